#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/process_list.hpp"
#include "collectors/simulated/model.hpp"
#include "collectors/table/device.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::simulated {

/// Real processes to show on simulated devices.
struct ProcessOption {
  std::optional<int> device;  ///< nullopt: all devices
  int pid = 0;                ///< 0: the pids in `file`
  std::string file;           ///< contains one pid per line
  /// Busy seconds per second of each process. nullopt: an equal share of the device's busy time.
  std::optional<double> busy;
  std::optional<double> memory_bytes;  ///< of each process; nullopt: unknown
};

/// Parses `GPU=WHO[,busy=RATIO][,memory=BYTES]`: "0=4711,busy=0.5,memory=2GiB", "*=/run/pids". GPU counts
/// from 0 or is `*`. WHO is a pid or an absolute path without commas. The Error names the text and the
/// correct form.
Result<ProcessOption> parse_process_option(std::string_view text, int device_count);

/// As many as a fleet has, to test Prometheus and the dashboards under load.
inline constexpr unsigned kMostDevices = 1024;

/// The keys of `collectors.simulated`. Their defaults are those of Settings below.
inline constexpr CollectorOption kOptions[] = {
    {"devices", CollectorOption::Kind::integer, "2", "Number of simulated GPUs, 1 to 1024."},
    {"seed", CollectorOption::Kind::integer, "1",
     "Seed of the uuids and phases. The same seed gives the same machine."},
    {"period", CollectorOption::Kind::duration, "7s300ms",
     "Length of the load cycle. Each device is busy once in a period."},
    {"duty", CollectorOption::Kind::number, "0.37", "Busy share of the period, 0 to 1."},
    {"idle_power", CollectorOption::Kind::number, "90", "Power while idle, in watts."},
    {"busy_power", CollectorOption::Kind::number, "420", "Power while busy, in watts; at least idle_power."},
    {"events", CollectorOption::Kind::list, "", kEventsHelp},
    {"processes", CollectorOption::Kind::list, "",
     "Real processes shown on the devices: \"GPU=WHO[,busy=RATIO][,memory=BYTES]\". GPU may be *. WHO is a "
     "pid "
     "or a file with one pid per line."},
};

/// The values of the keys.
struct Settings {
  int devices = 2;
  std::uint64_t seed = 1;
  Workload workload;
  std::vector<Event> events;
  std::vector<ProcessOption> processes;
};

/// Returns the settings, or the first invalid key with the correct form.
std::variant<Settings, OptionProblem> read_settings(
    const std::map<std::string, std::vector<std::string>>& options);

/// All rows as the docs list them.
std::span<const RowDoc> simulated_row_docs();

/// Opens simulated GPUs, for trials without hardware and for tests that compare with the truth (see Model).
/// Deterministic: the same options give the same numbers at the same time since the opening, at which the
/// clock is first read. An Error names the option.
Result<std::unique_ptr<Collector>> open_simulated(const CollectorContext& context);
std::optional<OptionProblem> check_simulated(const CollectorContext& context);

/// Off by default, so that simulated numbers appear only on request.
inline constexpr CollectorEntry kSimulated = {
    .name = "simulated",
    .enabled_by_default = false,
    .max_parallel = 0,
    .options = kOptions,
    .metrics = simulated_row_docs,
    .check = check_simulated,
    .open = open_simulated,
    .most_made_up = kMostDevices,
};

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
