#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/simulated/collector.hpp"
#include "collectors/simulated/model.hpp"
#include "collectors/table/device.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::simulated {

/// The simulated machine: immutable, shared by the collector and its devices. Any thread.
class Simulation {
 public:
  /// Time starts now. `clock` must outlive the object. `procfs`: the folder in which the processes are looked
  /// up.
  Simulation(const Settings& settings, const Clock& clock, std::string procfs = "/proc");

  Nanoseconds now() const noexcept { return clock_.monotonic() - start_; }
  Nanoseconds since_start(Nanoseconds monotonic) const noexcept { return monotonic - start_; }
  /// Converts a time since the start to Unix time.
  Nanoseconds realtime_of(Nanoseconds time) const noexcept { return clock_.realtime() - now() + time; }

  const std::vector<Model>& devices() const noexcept { return devices_; }
  const std::vector<ProcessOption>& processes() const noexcept { return processes_; }
  const std::string& procfs() const noexcept { return procfs_; }

 private:
  const Clock& clock_;
  const Nanoseconds start_;
  const std::string procfs_;
  const std::vector<ProcessOption> processes_;
  std::vector<Model> devices_;
};

/// The real processes that the option `processes` shows on one simulated device. Lane thread.
class Processes {
 public:
  Processes(std::shared_ptr<const Simulation> simulation, std::size_t device);

  /// Lists the live processes in the order of the option and its files, with their activity since the last
  /// call.
  void list(Nanoseconds now, std::vector<DeviceProcess>& out);

 private:
  void add(const ProcessOption& option, double seconds, std::vector<DeviceProcess>& out) const;

  const std::shared_ptr<const Simulation> simulation_;
  const Model& model_;
  std::vector<ProcessOption> options_;  // options for this device
  Nanoseconds listed_at_;
};

/// One device as its rows read it: the model at the time of the pass. Lane thread.
class SimulatedContext {
 public:
  SimulatedContext(std::shared_ptr<const Simulation> simulation, std::size_t device);

  Result<Done> open(const DeviceInfo& info);

  void close() noexcept {}  // holds nothing open

  /// Like a call into a stuck driver, does not return during a hang.
  Readiness begin_pass(const Pass& pass) noexcept;

  // Required by KnowsProcesses.

  static constexpr Tier kProcessesTier = Tier::fast;
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

  const Model& model() const noexcept { return *model_; }
  Nanoseconds time() const noexcept { return time_; }
  const Simulation& simulation() const noexcept { return *simulation_; }

 private:
  void sit_out_hang() noexcept;

  std::shared_ptr<const Simulation> simulation_;
  const Model* model_;
  Processes processes_;
  Nanoseconds time_{0};
};

/// All rows of a simulated device, in static storage.
std::span<const MetricRow<SimulatedContext>> simulated_rows() noexcept;

}  // namespace gpumeter::simulated
