#pragma once

#include <string>

#include "collectors/profiles/asking.hpp"

namespace gpumeter {

/// Carries out `gpumeter profile`: asks the daemon at this socket, prints what happens, and looks for the
/// traces. Returns the process's exit code: 0 if each trace was taken, otherwise 1. Waits until the trace is
/// written or the daemon gives up.
int ask_for_profile(const profiles::Asked& asked, const std::string& socket);

}  // namespace gpumeter
