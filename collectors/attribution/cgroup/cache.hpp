#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/sample.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::cgroup {

/// A process that uses a device. Its pid and start time identify it until the next reboot.
struct Process {
  std::uint64_t start_ticks = 0;  ///< 0 if unreadable
  std::string group;              ///< the path from which `attribution` is derived
  Attribution attribution;
};

/// Attributes the processes that a pass finds on the devices. Each call of of() reads the process's group
/// again, because processes are moved (by Slurm after the fork, by systemd if it delegates). The labels are
/// rebuilt only if the text has changed. One thread.
class Cache {
 public:
  /// Limit of cached processes, each with a text of one page at most: 9 MiB if all texts are that long, a
  /// hundredth in practice. NVML lists about a hundred per device. Further processes are read again each
  /// time.
  static constexpr std::size_t kMostProcesses = 2048;

  /// `procfs`: /proc, or a copy of it in tests.
  explicit Cache(std::string procfs, std::size_t most_processes = kMostProcesses);

  /// Removes the processes for which of() was not called since the last begin_pass().
  void begin_pass();

  /// Reads two small files. A process that is gone or hidden is `unattributed`, with a Reason. The reference
  /// is valid until the next call on this object.
  const Process& of(int pid);

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    Process process;
    std::string text;
    bool seen = false;
  };

  std::string_view read(const std::string& path, ReadStatus& status);
  const Process& nobodys(Reason reason);
  Reason why_not(const std::string& stat, ReadStatus status) const;

  std::string procfs_;
  std::size_t most_processes_;
  std::vector<char> buffer_;
  std::map<int, Entry> entries_;
  Entry unremembered_;
};

/// The real user of a process; nullopt if the process is gone or hidden. Any thread; reads one small file.
std::optional<std::uint32_t> real_uid_of(const std::string& procfs, int pid);

/// /proc/PID/comm as a label. The process sets it, so it may contain any bytes. Empty if it cannot be read.
/// Any thread; reads one small file.
std::string name_of(const std::string& procfs, int pid);

}  // namespace gpumeter::cgroup
