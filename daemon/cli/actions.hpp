#pragma once

#include "daemon/cli/options.hpp"

namespace gpumeter {

/// Does what the command line asks for and returns the process's exit code: 0, 1 (runtime), 2 (config).
int act(const Options& options);

}  // namespace gpumeter
