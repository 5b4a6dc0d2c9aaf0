#pragma once

#include <string>

#include "config/config.hpp"
#include "daemon/cli/options.hpp"

namespace gpumeter {

/// Runs `gpumeter check`: asks the running daemon for its judgement, or reads the GPUs itself if none runs.
/// Prints the result and returns the exit code of monitoring plugins. Ends the process with 3 (unknown) if a
/// driver or a name service does not answer for 30 s.
int check(const CheckOptions& options, const config::Config& config);

/// Prints that the check has no result, and returns 3.
int check_is_unknown(const CheckOptions& options, const std::string& reason);

}  // namespace gpumeter
