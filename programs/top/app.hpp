#pragma once

#include "programs/top/options.hpp"

namespace gpumeter::top {

/// Shows the machine until the person quits or a signal ends the program, or prints one table. Returns the
/// exit code. Blocks SIGINT, SIGTERM and SIGHUP: call it before the first thread starts.
int run(const Options& options);

}  // namespace gpumeter::top
