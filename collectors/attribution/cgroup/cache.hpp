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

/// A process of the device's users. Its pid and start time name it for as long as the machine runs.
struct Process {
  std::uint64_t start_ticks = 0;  ///< 0 where it cannot be read
  std::string group;              ///< the path that `attribution` is of
  Attribution attribution;
};

/// Whose the processes are that a pass finds on the devices. A process's group is read each time it is asked
/// for, since processes are moved (Slurm does after the fork, systemd where it delegates); the labels are
/// made anew only when the text is another. One thread.
class Cache {
 public:
  /// Processes remembered, with texts of a page at the most: 9 MiB where all of them are that long, one in a
  /// hundred of it in practice. NVML lists some hundred a device. Further ones are read anew each time.
  static constexpr std::size_t kMostProcesses = 2048;

  /// `procfs`: /proc, or a copy of it in tests.
  explicit Cache(std::string procfs, std::size_t most_processes = kMostProcesses);

  /// Forgets the processes that were not asked for since the last call.
  void begin_pass();

  /// Reads two small files. A process that is not there, or may not be seen, is `unattributed` and says why.
  /// Valid until the next call of anything here.
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
  Reason why_not(const std::string& folder, ReadStatus status) const;

  std::string procfs_;
  std::size_t most_processes_;
  std::vector<char> buffer_;
  std::map<int, Entry> entries_;
  Entry unremembered_;
};

}  // namespace gpumeter::cgroup
