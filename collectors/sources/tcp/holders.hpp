#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace gpumeter::tcp {

/// What /proc/PID/fd shows of a process.
struct Held {
  std::set<std::uint64_t> sockets;  ///< inodes
  int error = 0;                    ///< errno if the folder cannot be read: EACCES without CAP_SYS_PTRACE
};

/// Which of the sockets `wanted` the process has open. A process that was forked has those of its parent.
/// Reads one link for each descriptor of the process, so not for a thread that others wait for. Any thread.
Held sockets_of(const std::string& procfs, int pid, const std::set<std::uint64_t>& wanted);

}  // namespace gpumeter::tcp
