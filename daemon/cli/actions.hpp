#pragma once

#include "daemon/cli/options.hpp"

namespace gpumeter {

/// Runs the action of the command line. Returns the process's exit code: 0, 1 (runtime), 2 (config).
int act(const Options& options);

}  // namespace gpumeter
