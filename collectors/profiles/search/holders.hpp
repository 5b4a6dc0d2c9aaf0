#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"

namespace gpumeter::profiles {

/// The process that has a listening socket open.
struct SocketHolder {
  int pid = 0;
  std::uint32_t uid = 0;             ///< effective
  std::uint64_t start = 0;           ///< in clock ticks since boot
  bool has_worker_server = false;    ///< it has a thread of PyTorch's worker server
  bool has_safe_host_trace = false;  ///< its framework is known to go on while the host is traced
};

/// Sockets to look for, by inode, with the user of their process; nullopt: any user.
using WantedSockets = std::map<std::uint64_t, std::optional<std::uint32_t>>;

/// What /proc shows of a process.
struct ProcessLook {
  SocketHolder process = {};        ///< pid 0: it has ended
  std::set<std::uint64_t> sockets;  ///< those of the wanted ones that it has open
};

/// Looks at a process, also at its descriptors if sockets are wanted. Reads /proc. Any thread.
ProcessLook look_at(const std::string& procfs, int pid, const WantedSockets& wanted);

/// Remembers which process has which socket, and looks through the processes only for sockets that are new.
/// If a process and its children have a socket, the oldest one counts: children inherit it. Without
/// CAP_SYS_PTRACE, finds only processes of its own user. One thread.
///
/// The kernel may keep a reader of /proc/PID waiting. A process that takes longer than kPatience costs one
/// thread ("profile-look") until it answers, and no other process waits for it. What was known of it stays in
/// force.
class SocketHolders {
 public:
  /// For one process; a look takes less than a millisecond.
  static constexpr Nanoseconds kPatience = std::chrono::seconds(1);
  /// look_at() with the procfs, or a test's.
  using Look = std::function<ProcessLook(int pid, const WantedSockets& wanted)>;

  /// `clock` must outlive the threads.
  SocketHolders(const std::string& procfs, const Clock& clock, Look look = {});

  /// Looks for these sockets, and forgets all others.
  void look_for(const WantedSockets& sockets);
  /// Returns null if no process is known.
  const SocketHolder* of(std::uint64_t inode) const;

 private:
  std::vector<std::string> known_pids() const;
  void renew();
  void find(const WantedSockets& wanted);

  const std::string procfs_;
  const Look look_;
  std::unique_ptr<BoundedCalls> calls_;
  std::map<std::uint64_t, SocketHolder> known_;  ///< by inode
};

}  // namespace gpumeter::profiles
