#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// The result of a reload, for the command that requested it. A signal has no reply, so the daemon writes the
/// result to a file in its runtime folder.
struct ReloadOutcome {
  pid_t daemon = 0;
  Nanoseconds begun{};                ///< CLOCK_MONOTONIC, before the configuration was read
  std::vector<std::string> problems;  ///< one line each; empty: the configuration is in force
};

/// Returns systemd's $RUNTIME_DIRECTORY, the first of several folders; empty if the variable is not set. No
/// other daemon has the same one.
std::string own_runtime_folder();

/// Returns own_runtime_folder(), or /run/gpumeter if there is none.
std::string runtime_folder();

/// Replaces the previous outcome atomically, by a rename. Does not sync, because the file need not survive a
/// restart of the machine.
Result<Done> write_outcome(const std::string& folder, const ReloadOutcome& outcome);

/// Returns nullopt if no outcome exists or the file cannot be read.
std::optional<ReloadOutcome> read_outcome(const std::string& folder);

/// Sends SIGHUP to a daemon and waits for the outcome of a reload that began after the signal. Returns an
/// Error if the signal was not sent, the daemon ended, or no outcome appeared within `patience`.
Result<ReloadOutcome> request_reload(pid_t daemon, const std::string& folder, const Clock& clock,
                                     Nanoseconds patience);

}  // namespace gpumeter
