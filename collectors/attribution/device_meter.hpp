#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/process_list.hpp"
#include "collectors/attribution/cgroup/cache.hpp"
#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/attribution/workload_book.hpp"

namespace gpumeter::workloads {

/// The use of a device by a process, or by a workload with all of its processes. A value that the driver does
/// not report is 0.
struct Claim {
  double busy_seconds = 0;
  double memory_bytes = 0;
  std::size_t processes = 0;
};

/// Writes parts of 1 in the order of the claims. They are divided by busy time; if none was busy, by memory;
/// if no memory is known, by number of processes. They sum to 1. If there is no process, returns false and
/// all parts are 0.
bool divide(std::span<const Claim> claims, std::vector<double>& parts);

/// The sum over the last minute, accurate to one second. One bucket per second; the oldest is reused.
class LastMinute {
 public:
  /// `now` must not decrease.
  void add(Nanoseconds now, double amount) noexcept {
    turn(now);
    buckets_[place(second_)] += amount;
  }

  double sum(Nanoseconds now) noexcept {
    turn(now);
    double sum = 0;
    for (const double amount : buckets_) sum += amount;
    return sum;
  }

 private:
  static constexpr std::int64_t kSeconds = 60;

  static std::size_t place(std::int64_t second) noexcept {
    return static_cast<std::size_t>(second % kSeconds);
  }

  void turn(Nanoseconds now) noexcept {
    const std::int64_t second = std::chrono::floor<std::chrono::seconds>(now).count();
    if (second - second_ >= kSeconds) buckets_ = {};
    for (std::int64_t past = second_ + 1; past <= second && past < second_ + kSeconds; ++past) {
      buckets_[place(past)] = 0;
    }
    second_ = second;
  }

  std::array<double, kSeconds> buckets_{};
  std::int64_t second_ = 0;
};

/// A workload on one device. Its counters start when it was first seen there.
struct Workload {
  double energy_joules = 0;
  std::optional<double> busy_seconds;  ///< nullopt: never reported by the driver
  std::optional<double> memory_bytes;  ///< nullopt: it has no process, or the driver does not report memory
  std::optional<double> peak_memory;   ///< the highest memory_bytes of any look
  double share = 0;
  std::size_t processes = 0;
  double part = 0;  ///< its part of future energy
  Nanoseconds last_seen{};
  /// CLOCK_REALTIME of the look that saw it first, when its counters were 0. Zero: unknown, and
  /// `unattributed`, whose energy begins with that of the device.
  Nanoseconds begun{};
  LastMinute recent;  ///< busy time
  bool is_measured = false;
};
using WorkloadEntry = std::pair<const WorkloadId, Workload>;

/// A process on one device, or one that left within the last minute.
struct Process {
  ProcessUse use;
  std::string name;                    ///< only if the meter reads names
  std::optional<double> memory_bytes;  ///< at the last look
  double part = 0;                     ///< its part of future energy
  Nanoseconds last_seen{};
  std::uint64_t look = 0;  ///< the last look in which it was found
  WorkloadEntry* workload = nullptr;
};

/// Measures the workloads on one device. New energy is assigned at once to the workloads of the last look, so
/// their sum always equals the device's energy. Removing a workload also removes its past energy. One thread,
/// the device's lane. Only update() makes system calls.
class DeviceMeter {
 public:
  /// Limit in addition to `unattributed` and `_other`; each workload has up to five series.
  static constexpr std::size_t kMostWorkloads = 64;
  /// How long a workload stays after its last process, so that a scraper reads its final values.
  static constexpr Nanoseconds kWorkloadStays = std::chrono::minutes(10);
  static constexpr Nanoseconds kProcessStays = std::chrono::minutes(1);
  /// Limit of processes with their own values, as many as cgroup::Cache caches. Further processes count only
  /// for their workloads. If the table is full, processes that left are removed before their minute is over.
  static constexpr std::size_t kMostProcesses = cgroup::Cache::kMostProcesses;

  /// `procfs`: /proc, or a copy in tests. `with_names`: reads the names of processes.
  DeviceMeter(std::string procfs, bool with_names, std::shared_ptr<WorkloadBook> book);
  ~DeviceMeter();
  DeviceMeter(const DeviceMeter&) = delete;
  DeviceMeter& operator=(const DeviceMeter&) = delete;

  /// Continues the workloads and the energy counter of an earlier process of gpumeter. `begun` of the
  /// entries: as in Workload. Call it before anything else.
  void resume(const DeviceAccount& account);

  /// Adds a reading of the device's counter. The first reading is unattributed; a decrease adds nothing.
  void add_energy(double total_joules);

  /// Takes the processes now on the device; reads three small files per process. `realtime`: CLOCK_REALTIME
  /// at `now`; zero: unknown.
  void update(Nanoseconds now, std::span<const DeviceProcess> listed, Nanoseconds realtime = {});

  /// The device will not be read for a while: its processes are unknown until the next update().
  void interrupt();

  /// True if there was an update() since the last interrupt().
  bool is_known() const noexcept { return is_known_; }
  /// Always contains `unattributed`.
  const std::map<WorkloadId, Workload>& workloads() const noexcept { return workloads_; }
  const std::map<ProcessId, Process>& processes() const noexcept { return processes_; }
  /// Grows when a workload or a present process is added or removed. References to both kinds of entries stay
  /// valid while it is unchanged.
  std::uint64_t generation() const noexcept { return generation_; }

  std::vector<ProcessUse> uses() const;

 private:
  struct Claimant {
    WorkloadEntry* workload;
    Process* process;  // null: beyond the limit
  };

  void begin_look();
  Claimant claimant_of(const DeviceProcess& listed);
  Claimant claimant_of_process(int pid);
  Process* last_of(int pid);
  WorkloadEntry& workload_of(const cgroup::Attribution& attribution);
  Process* process_of(const ProcessId& id);
  void make_room();
  void recognise(Process& process, const cgroup::Process& found, WorkloadEntry& workload);
  void account(Nanoseconds now, const Claimant& claimant, const DeviceProcess& listed);
  void divide_energy();
  void note_peaks() noexcept;
  void divide_shares(Nanoseconds now);
  void forget(Nanoseconds now);

  const std::string procfs_;
  const bool with_names_;
  const std::shared_ptr<WorkloadBook> book_;
  std::optional<cgroup::Cache> cgroups_;  // created with the first process, because most devices have none
  std::map<WorkloadId, Workload> workloads_;
  Workload& unattributed_;
  std::size_t named_ = 0;  // number of workloads_ that count towards the limit
  std::map<ProcessId, Process> processes_;
  std::optional<double> last_energy_;
  bool is_known_ = false;
  std::uint64_t generation_ = 0;
  std::uint64_t look_ = 1;
  std::uint64_t full_look_ = 0;  // the last look that could not make room
  Nanoseconds looked_at_{};      // CLOCK_REALTIME of the present look; zero: unknown
  // State of the present look, in the list's order; members, to reuse their memory.
  std::vector<Claim> claims_;
  std::vector<Claimant> claimants_;
  std::vector<double> parts_;
};

}  // namespace gpumeter::workloads
