#pragma once

#include <optional>

namespace gpumeter {

/// Replaces the process by the program of a command that is a program of its own: `gpumeter top ARGUMENTS`
/// runs `gpumeter-top ARGUMENTS`, and the other commands likewise, from the folder of this binary, else from
/// $PATH. Returns nullopt if the command line names no such command, and the exit code if the program cannot
/// be run. Before the first thread.
std::optional<int> run_companion(int argc, char* const* argv);

}  // namespace gpumeter
