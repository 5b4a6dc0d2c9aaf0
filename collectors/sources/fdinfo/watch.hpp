#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/api/process_list.hpp"
#include "collectors/api/sample.hpp"

/// What a collector reads from the scans of one DRM device's clients: busy time and processes.
namespace gpumeter::fdinfo {

/// A collector's watch of one DRM device: scans run while it is on. Lane thread.
class DeviceWatch {
 public:
  /// The interval that keeps a scan of 2000 processes with 50 descriptors each below 1 % of a core.
  static constexpr Nanoseconds kEvery = std::chrono::seconds(5);
  /// A scan older than this is no longer used: the scanner hangs, or reads fail.
  static constexpr Nanoseconds kStale = std::chrono::seconds(30);

  /// Watches nothing.
  DeviceWatch() = default;
  /// Starts the watch if `is_on`. `users` may be null: nothing is watched. `device` as in DrmUsers::watch().
  DeviceWatch(std::shared_ptr<DrmUsers> users, std::string device, bool is_on = true);

  /// True if there is a scanner.
  explicit operator bool() const noexcept { return users_ != nullptr; }

  /// Some drivers (xe) resume the device when fdinfo is read. A collector that lets its device sleep turns
  /// the watch off, and on again when the device is awake. The latter allocates; without memory the watch
  /// stays off, and the next call tries again.
  void turn_on(bool is_on) noexcept;

  /// The last scan, if it is not out of date at `now` (CLOCK_MONOTONIC); null otherwise, and before the
  /// first. `is_late` is then true if there was a scan.
  std::shared_ptr<const DrmUse> latest(Nanoseconds now, bool& is_late) const noexcept;

 private:
  std::shared_ptr<DrmUsers> users_;
  std::string device_;
  std::shared_ptr<void> handle_;  // null: off
};

/// The busy time of one device from the scans of its clients, for rows of gpu_engine_busy_seconds_total,
/// gpu_busy_seconds_total and gpu_utilization_ratio. The busy time of the device is that of its busiest class
/// of engines: classes overlap in time, so their sum would be too much. Work of processes that may not be
/// read, and of the kernel, is missing. Lane thread; no call blocks or allocates.
class BusyCounters {
 public:
  /// Takes the last scan of the watch. Once per pass, with Pass::now.
  void begin_pass(const DeviceWatch& watch, Nanoseconds now) noexcept;

  /// Seconds since the daemon's start, averaged over the engines of the class; never falls. `unsupported`
  /// until a client of the device has reported the class, `timeout` if the scans are late.
  Sample engine(EngineClass engine) const noexcept;

  /// Seconds in which the busiest class was busy, since the first pass; never falls. `unsupported` until a
  /// client of the device has reported a class: some drivers never do, such as xe in a virtual machine.
  Sample busiest() const noexcept;

  /// Share of the time between the last two scans in which the busiest class was busy, at most 1.
  /// `unsupported` as busiest(), and before the second scan.
  Sample utilization() const noexcept;

  /// The same for one class. `unsupported` until a client of the device has reported it.
  Sample utilization(EngineClass engine) const noexcept;

 private:
  void advance(const DrmUse& use) noexcept;
  Sample known(const std::optional<double>& value) const noexcept;

  std::shared_ptr<const DrmUse> use_;
  std::optional<double> busiest_;
  std::optional<double> utilization_;
  EngineSeconds shares_{};
  EngineSeconds last_{};
  Nanoseconds last_scan_{};
  Nanoseconds last_observed_{};
  bool has_last_ = false;
  bool is_late_ = false;
};

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
