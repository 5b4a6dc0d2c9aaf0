#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

/// How a reload ended, for the command that asked for it. A signal has no answer, so the daemon leaves one in
/// a file of its runtime folder.
namespace gpumeter {

struct ReloadOutcome {
  pid_t daemon = 0;
  Nanoseconds begun{};                ///< CLOCK_MONOTONIC, before the configuration was read
  std::vector<std::string> problems;  ///< a line each; empty: the configuration is in force
};

/// systemd's $RUNTIME_DIRECTORY, the first if there are several; without it /run/gpumeter.
std::string runtime_folder();

/// Replaces the outcome before it at once, by a rename. Does not sync: it is to be read while this machine
/// runs.
Result<Done> write_outcome(const std::string& folder, const ReloadOutcome& outcome);

/// nullopt: there is none, or it cannot be read.
std::optional<ReloadOutcome> read_outcome(const std::string& folder);

/// Sends SIGHUP to a daemon and waits for the outcome of a reload that began after that. An Error: the signal
/// was not sent, the daemon ended, or there was no outcome within `patience`.
Result<ReloadOutcome> request_reload(pid_t daemon, const std::string& folder, const Clock& clock,
                                     Nanoseconds patience);

}  // namespace gpumeter
