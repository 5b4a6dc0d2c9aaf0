#pragma once

#include <functional>

#include "base/clock.hpp"
#include "config/config.hpp"
#include "daemon/cli/options.hpp"

namespace gpumeter {

/// Runs the action of the command line. Returns the process's exit code: 0, 1 (runtime), 2 (config).
int act(const Options& options);

/// Loads and checks the configuration, prints what is wrong with it on stderr, and returns the exit code of
/// `use`, which gets null if it is wrong. Leaves the process by _exit() if the name service hangs.
using UseConfig = std::function<int(const config::Config*)>;
int with_config(const Options& options, const Clock& clock, const UseConfig& use);

}  // namespace gpumeter
