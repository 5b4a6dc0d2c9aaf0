#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collectors/api/drm_use.hpp"
#include "collectors/api/process_list.hpp"
#include "collectors/sources/fdinfo/device_watch.hpp"

namespace gpumeter::fdinfo {

/// Memory of a process that counts as memory of the device. `device`: the device's own; the host's if the
/// driver lists no region of the device for the process, because the device then works in the host's memory
/// (kernel 7.2, i915_drm_client.c and xe_drm_client.c, show_meminfo: all regions that the device has). `all`:
/// for APUs, which have a region of their own in the host's memory.
enum class MemoryKind : std::uint8_t { device, all };

/// The processes of one device from the scans of its clients, for ListsProcesses. The busy time of a process
/// is that of its busiest class of engines since the last list. Lane thread.
class ProcessLists {
 public:
  explicit ProcessLists(MemoryKind memory = MemoryKind::device) noexcept : memory_(memory) {}

  /// Contract of ListsProcesses::processes(), except that `out` may contain processes that another source
  /// lists, by pid. A process in both lists keeps the larger number of each kind, because both sources count
  /// the same use, and each may miss a part. `used`: the memory of this kind that is in use on the device,
  /// in bytes. A buffer that two processes share is in the numbers of both, so that their sum may exceed
  /// `used`. The excess is then taken from the shared parts, in proportion, and only if these do not suffice
  /// from the rest. nullopt: unknown, and the numbers remain. `unsupported` before the first scan, and
  /// `timeout` if the scans are late.
  ReadStatus read(const DeviceWatch& watch, Nanoseconds now, std::optional<double> used,
                  std::vector<DeviceProcess>& out) noexcept;

 private:
  using Key = std::pair<int, std::uint64_t>;  // pid and start
  struct Memory {
    std::optional<double> bytes;
    double shared = 0;  // part of `bytes`
  };

  void list(const DrmUse& use, std::optional<double> used, std::vector<DeviceProcess>& out);
  std::optional<double> busy_of(const DrmProcess& process, Nanoseconds since) const;
  Memory memory_of(const DrmProcess& process) const;
  void merge(const DrmProcess& process, Nanoseconds since, std::size_t others,
             std::vector<DeviceProcess>& out);
  void fit(double used, std::vector<DeviceProcess>& out) const;

  MemoryKind memory_;
  std::map<Key, EngineSeconds> last_;  // at the last scan
  std::optional<Nanoseconds> last_scan_;
  std::vector<double> shared_;  // of the list's processes; a member, to reuse its memory
};

}  // namespace gpumeter::fdinfo
