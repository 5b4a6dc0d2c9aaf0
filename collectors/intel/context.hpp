#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/intel/environment.hpp"
#include "collectors/intel/gts.hpp"
#include "collectors/intel/paths.hpp"
#include "collectors/intel/pmu/engine_meter.hpp"
#include "collectors/intel/throttle.hpp"
#include "collectors/sources/fdinfo/busy_counters.hpp"
#include "collectors/sources/fdinfo/device_watch.hpp"
#include "collectors/sources/fdinfo/processes.hpp"
#include "collectors/sources/file_cache.hpp"
#include "collectors/sources/runtime_power.hpp"
#include "collectors/sources/screens.hpp"
#include "collectors/sources/sleep_policy.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::intel {

/// One open card: its files, events and node, and the values that this pass has read from them. Readers
/// (readers/) hold references to it. Lane thread.
class IntelContext {
 public:
  IntelContext() = default;
  explicit IntelContext(Environment environment) : environment_(std::move(environment)) {}

  /// Opens the card whose PCI function is the folder `info.source`. Returns an Error if it does not exist.
  Result<Done> open(const DeviceInfo& info);

  void close() noexcept;

  /// Returns `asleep` also while the card is not read so that it can fall asleep (SleepPolicy). A screen that
  /// is on, a client whose work has run, and a clock that runs are signs of use.
  Readiness begin_pass(const Pass& pass) noexcept;

  /// The kernel's power state: false while the card sleeps or is about to, whether this pass reads it or not.
  bool awake() const noexcept { return awake_; }

  // For BindsAgain. A sleeping card is not read, so it binds again when it is awake.
  void end_binding();
  bool has_more(Nanoseconds now) noexcept;

  // For KnowsProcesses.

  static constexpr Tier kProcessesTier = Tier::normal;
  /// The clients of the card in /proc.
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

  // For readers, at attach: handles for names as in IntelPaths; nullopt if the file does not exist.

  std::optional<int> file(std::string_view name);
  std::optional<int> constant_file(std::string_view name);  ///< read once, see FileCache
  std::optional<int> lines_file(std::string_view name);     ///< for several rows each, see TextCache
  std::optional<int> file_at(const std::string& path) { return files_.open(path); }
  std::optional<std::string> path_of(std::string_view name) { return paths_.resolve(name); }
  const std::vector<Gt>& gts() const noexcept { return gts_; }
  /// True if the events of the engines are open.
  bool has_events() const noexcept { return meter_.is_open(); }
  bool has_events(EngineClass engine_class) const noexcept { return meter_.has(engine_class); }
  bool has_clients() const noexcept { return static_cast<bool>(clients_); }
  bool has_memory() const noexcept { return !node_.empty(); }
  /// True if the kernel counts the card's errors and permits reading the counts.
  bool has_errors() const noexcept { return has_errors_; }
  ThrottleMask throttle_reasons() const noexcept { return throttle_.known(); }

  // For readers, each pass.

  Nanoseconds now() const noexcept { return now_; }
  /// True if nothing was observed before this pass.
  bool is_after_gap() const noexcept { return is_after_gap_; }
  Sample integer(int file) noexcept { return files_.read(file); }
  TextCache::Text lines(int lines_file) noexcept { return lines_.read(lines_file); }
  const Throttle::Reading& throttle() noexcept { return throttle_.read(); }
  /// The events' counts, read by the first call in a pass.
  const EngineTimes& events() noexcept;
  const fdinfo::BusyCounters& clients() const noexcept { return client_counters_; }
  /// The memory's regions, asked for by the first call in a pass.
  const memory::Regions& memory() noexcept;
  /// The error counts, asked for by the first call in a pass.
  const ras::Counts& errors() noexcept;

 private:
  bool may_read(const Pass& pass, const PowerState& state) noexcept;
  bool is_busy() noexcept;
  bool clients_have_worked() noexcept;
  bool must_let_sleep(const PowerState& state) const noexcept;
  bool scans_prevent_sleep(const PowerState& state) const noexcept;

  Environment environment_;
  DeviceInfo info_;
  IntelPaths paths_;
  std::vector<Gt> gts_;
  FileCache files_;
  TextCache lines_;
  Throttle throttle_;
  RuntimePower power_;
  SleepPolicy sleep_;
  Screens screens_;
  std::vector<int> clocks_;  // act_freq of each GT
  std::string pmu_folder_;   // empty: it has no events, or they may not be opened here
  pmu::EngineMeter meter_;
  fdinfo::DeviceWatch clients_;
  fdinfo::BusyCounters client_counters_;
  fdinfo::ProcessLists client_lists_;
  double clients_worked_ = 0;  // seconds, at the last clients_have_worked()
  std::string node_;           // empty: its memory cannot be asked for
  memory::Regions memory_;
  ras::Counts errors_;
  bool has_errors_ = false;
  Nanoseconds now_{0};
  bool awake_ = true;
  bool is_after_gap_ = true;
  bool is_meter_fresh_ = false;
  bool is_memory_fresh_ = false;
  bool are_errors_fresh_ = false;
  bool was_let_sleep_ = false;  // when it was opened, its events would have kept it awake
  bool is_let_sleep_ = false;   // the same at the last pass
  bool is_bound_asleep_ = false;
  bool is_provisional_ = false;
  Nanoseconds look_again_at_{};
};

}  // namespace gpumeter::intel
