#pragma once

#include <string>

#include "base/result.hpp"

namespace gpumeter {

/// The kernel's figures of the daemon's own process, in base units.
struct ProcessStats {
  double cpu_seconds;
  double start_time_seconds;  ///< since 1970, to the second: the kernel reports the boot time in whole
                              ///< seconds
  double virtual_bytes;
  double resident_bytes;
  double threads;
  double open_fds;
  double max_fds;  ///< soft limit; +Inf if there is none
};

/// Reads <procfs>/self and <procfs>/stat; `procfs` is "/proc" except in tests. Takes a few microseconds and
/// never blocks. Returns an Error if a file is missing or does not match proc(5).
Result<ProcessStats> read_process_stats(const std::string& procfs);

}  // namespace gpumeter
