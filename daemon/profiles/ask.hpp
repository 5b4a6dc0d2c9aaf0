#pragma once

#include "collectors/profiles/asking.hpp"
#include "collectors/profiles/settings.hpp"

namespace gpumeter {

/// Carries out `gpumeter profile`: asks the daemon, prints what happens, and looks for the traces. Returns
/// the process's exit code: 0 if each trace was taken, otherwise 1. Waits until the trace is written or the
/// daemon gives up. Writes only files with a trace's name in the folder of the request or of `settings`, and
/// connects only to sockets that `settings` names, whatever the daemon says.
int ask_for_profile(const profiles::Asked& asked, const profiles::Settings& settings);

}  // namespace gpumeter
