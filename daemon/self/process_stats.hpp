#pragma once

#include <string>

#include "base/result.hpp"

namespace gpumeter {

/// The daemon's own process as the kernel sees it, in base units.
struct ProcessStats {
  double cpu_seconds;
  double start_time_seconds;  ///< since 1970, to the second: the kernel gives the boot time no finer
  double virtual_bytes;
  double resident_bytes;
  double threads;
  double open_fds;
  double max_fds;  ///< soft limit; +Inf where there is none
};

/// Reads <procfs>/self and <procfs>/stat; `procfs` is "/proc" but in tests. A few microseconds, never
/// blocks. An Error where a file is missing or not as proc(5) says.
Result<ProcessStats> read_process_stats(const std::string& procfs);

}  // namespace gpumeter
