#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/device_identity.hpp"
#include "collectors/api/process_list.hpp"
#include "collectors/attribution/cost/cost_meter.hpp"
#include "collectors/attribution/device_meter.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::workloads {

/// The time that a throttled device lost to its clock. At half of the maximum clock, two throttled seconds
/// lose one. The time of a pass counts with the clock at its end. Causes that hold at the same time count
/// once: the cause with the longest time stands for all of them, so the result is a lower bound. One thread,
/// the device's lane.
class ClockLoss {
 public:
  using Throttled = std::pair<std::string, double>;  ///< cause and its counter, in seconds

  /// After each pass. `clock`, `most`: the current and the maximum frequency of the same clock, in hertz. A
  /// pass without them counts nothing.
  void pass(std::span<const Throttled> throttled, std::optional<double> clock, std::optional<double> most);

  /// The time until the next pass is not counted.
  void interrupt() noexcept { last_.clear(); }

  /// Grows. nullopt: no pass had counters and both frequencies.
  std::optional<double> seconds() const noexcept { return seconds_; }

 private:
  std::vector<Throttled> last_;
  std::optional<double> seconds_;
};

}  // namespace gpumeter::workloads

namespace gpumeter {

/// Attributes the use of one device: from its driver's process list to series and to the use published for
/// jobs. Lane thread.
class DeviceWorkloads {
 public:
  /// `device` must outlive this object. `settings` must have a book.
  DeviceWorkloads(ListsProcesses& device, WorkloadSettings settings);
  ~DeviceWorkloads();
  DeviceWorkloads(const DeviceWorkloads&) = delete;
  DeviceWorkloads& operator=(const DeviceWorkloads&) = delete;

  /// The device was opened with these series, by slot; its source has no other series yet.
  void attach(const DeviceIdentity& identity, std::span<const SeriesSpec> series);

  /// Called after a pass. Reads the device's energy from the source's frame. If the pass was of the
  /// processes' tier, or a list was requested, lists the processes from the driver. Then writes the current
  /// series into slots of the source; the owner of the source commits them. There are no series until the
  /// driver has listed the processes once.
  void take(const Pass& pass, PassOutcome outcome, Source& source);

  /// The device will not be read until it is attached again.
  void lose();

 private:
  struct Point {  // exactly one of `workload` and `process` is set
    const MetricDescriptor* family;
    const workloads::WorkloadId* workload;
    const workloads::Process* process;
    double value;

    bool same_series(const Point& other) const noexcept {
      return family == other.family && workload == other.workload && process == other.process;
    }
  };

  void resume(bool counts_own_energy);
  bool is_time_to_look(const Pass& pass) const;
  bool look(const Pass& pass, PassOutcome outcome);
  workloads::DeviceReadings readings(const Frame& frame) const;
  void keep_costs(Nanoseconds now, bool has_looked, const workloads::DeviceReadings& readings);
  void publish(Nanoseconds now, const Frame& frame, workloads::DeviceReadings readings);
  Nanoseconds realtime_of(Nanoseconds monotonic) const;
  double since_of(const Point& point) const;
  std::optional<double> value(const Frame& frame, std::optional<std::size_t> slot) const;
  void collect_points(bool with_energy);
  void add_points(const workloads::WorkloadEntry& entry, bool with_energy);
  void add_points(const workloads::Process& process);
  void write_series(Source& source);
  Labels labels_of(const Point& point) const;

  ListsProcesses& device_;
  const WorkloadSettings settings_;
  workloads::DeviceMeter meter_;
  workloads::CostMeter costs_;
  workloads::ClockLoss clock_loss_;
  bool is_resumed_ = false;
  DeviceIdentity identity_;
  Labels device_labels_;
  std::optional<std::size_t> energy_slot_;
  std::optional<std::size_t> busy_slot_;
  std::optional<std::size_t> clock_slot_;
  std::optional<std::size_t> clock_max_slot_;
  std::vector<std::pair<std::string, std::size_t>> throttle_slots_;  // by cause
  std::shared_ptr<const workloads::DeviceUse> use_;
  Nanoseconds asked_at_{};  ///< the last look, also if the driver did not answer
  Nanoseconds listed_at_{};
  std::vector<Source::Slot> slots_;  ///< one per element of last_points_
  std::uint64_t series_generation_ = 0;
  // Members, to reuse their memory.
  std::vector<DeviceProcess> listed_;
  std::vector<Point> points_;
  std::vector<Point> last_points_;
};

}  // namespace gpumeter
