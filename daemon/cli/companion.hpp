#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace gpumeter {

/// A command that is a program of its own.
struct Companion {
  std::string_view command;
  const char* program;
  std::string_view help;
  bool is_told = false;  ///< the program's first argument is the command
  bool is_first = true;  ///< false: flags of the configuration may precede the command
};
inline constexpr std::array<Companion, 9> kCompanions = {
    {{"forget", "gpumeter-commands", "Forget a missing GPU, so that its gpu_up 0 ends (forget UUID)", true,
      false},
     {"allocate", "gpumeter-commands", "Record by hand who was given a GPU (allocate --help)", true, false},
     {"profile", "gpumeter-profiler", "Take a profile (trace) of a running job (profile --help)", true},
     {"check", "gpumeter-commands", "Report failed and degraded GPUs as monitoring plugins do (check --help)",
      true, false},
     {"record", "gpumeter-commands", "Record the pages of a daemon for --replay (record --help)", true,
      false},
     {"explain", "gpumeter-commands",
      "Explain the lines of a kernel log, a code or a reason (explain --help)", true},
     {"bundle", "gpumeter-commands",
      "Write a bug report: versions, log, pages, readings of each device, redacted (bundle --help)", true,
      false},
     {"import", "gpumeter-import", "Send results of other benchmarks to the daemon (import --help)"},
     {"top", "gpumeter-top", "Show GPUs and jobs in the terminal (top --help)"}}};

/// Replaces the process by the program of its command: `gpumeter top ARGUMENTS` runs `gpumeter-top
/// ARGUMENTS`, and the other commands likewise, from the folder of this binary, else from $PATH. Returns
/// nullopt if the command line names no command, and the exit code if the program cannot be run. Before the
/// first thread.
std::optional<int> run_companion(int argc, char* const* argv);

}  // namespace gpumeter
