#pragma once

namespace gpumeter::profiles {

/// `gpumeter profile`: asks the program that runs as a service, prints what happens, and looks for the
/// traces. Returns the process's exit code: 0 if each trace was taken, 1, or 2 (flags or configuration).
/// Waits until the trace is written or the program gives up. Writes only files with a trace's name in the
/// folder of the request or of the configuration, and connects only to sockets that the configuration names,
/// whatever the program answers.
int ask_for_profile(int argc, char* const* argv);

}  // namespace gpumeter::profiles
