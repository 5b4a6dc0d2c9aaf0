#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/api/process_list.hpp"
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
  void pass(std::span<const Throttled> throttled, std::optional<double> clock, std::optional<double> most) {
    double longest = 0;
    for (const auto& [cause, seconds] : throttled) {
      const auto last = std::ranges::find(last_, cause, &Throttled::first);
      if (last != last_.end()) longest = std::max(longest, seconds - last->second);
    }
    last_.assign(throttled.begin(), throttled.end());
    if (throttled.empty() || !clock || !most || *most <= 0) return;
    const double missing = 1 - std::clamp(*clock / *most, 0.0, 1.0);
    seconds_ = seconds_.value_or(0) + longest * missing;
  }

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
  DeviceWorkloads(ListsProcesses& device, WorkloadSettings settings)
      : device_(device),
        settings_(std::move(settings)),
        meter_(settings_.procfs, settings_.processes, settings_.book) {}
  ~DeviceWorkloads() { settings_.book->withdraw(use_); }
  DeviceWorkloads(const DeviceWorkloads&) = delete;
  DeviceWorkloads& operator=(const DeviceWorkloads&) = delete;

  /// The device was opened with these series, by slot; its source has no other series yet.
  void attach(const DeviceIdentity& identity, std::span<const SeriesSpec> series) {
    identity_ = identity;
    device_labels_ = Labels(identity.info, identity.index, "", {.vendor = false, .model = false});
    energy_slot_ = slot_of(series, catalog::energy_joules);
    busy_slot_ = slot_of(series, catalog::busy_seconds);
    const std::vector<Label> computes = {{"clock", "graphics"}};
    clock_slot_ = slot_of(series, catalog::clock, computes);
    clock_max_slot_ = slot_of(series, catalog::clock_max, computes);
    throttle_slots_.clear();
    for (std::size_t slot = 0; slot < series.size(); ++slot) {
      const SeriesSpec& spec = series[slot];
      const bool is_cause = spec.family == &catalog::throttle_seconds && spec.labels.size() == 1;
      if (is_cause) throttle_slots_.emplace_back(spec.labels.front().value, slot);
    }
    slots_.clear();
    last_points_.clear();
    if (!std::exchange(is_resumed_, true)) resume(counts_own_energy(series));
  }

  /// Called after a pass. Reads the device's energy from the source's frame. If the pass was of the
  /// processes' tier, or a list was requested, lists the processes from the driver. Then writes the current
  /// series into slots of the source; the owner of the source commits them. There are no series until the
  /// driver has listed the processes once.
  void take(const Pass& pass, PassOutcome outcome, Source& source) {
    const Frame& frame = source.frame();
    const std::optional<double> energy = value(frame, energy_slot_);
    if (energy) meter_.add_energy(*energy, pass.now);
    const bool has_looked = is_time_to_look(pass) && look(pass, outcome, value(frame, busy_slot_));
    if (meter_.is_known()) {
      use_ = use_of(pass.now, frame);
      if (settings_.costs) {
        meter_.count_costs(pass.now, has_looked, *use_);
        settings_.costs->publish(meter_.account(*use_, energy));
      }
      settings_.book->publish(use_);
    }
    collect_points(energy.has_value());
    write_series(source);
  }

  /// The device will not be read until it is attached again.
  void lose() {
    meter_.interrupt();
    clock_loss_.interrupt();
    settings_.book->withdraw(std::exchange(use_, nullptr));
  }

 private:
  static std::optional<std::size_t> slot_of(std::span<const SeriesSpec> series,
                                            const MetricDescriptor& family,
                                            const std::vector<Label>& labels = {}) {
    const auto found = std::find_if(series.begin(), series.end(), [&](const SeriesSpec& spec) {
      return spec.family == &family && spec.labels == labels;
    });
    if (found == series.end()) return std::nullopt;
    return static_cast<std::size_t>(found - series.begin());
  }
  /// gpu_meter_source_info states the origin of each counter.
  static bool counts_own_energy(std::span<const SeriesSpec> series) {
    return std::ranges::any_of(series, [](const SeriesSpec& spec) {
      const auto has = [&](const char* name, const char* value, bool is_equal) {
        return std::ranges::any_of(spec.labels, [&](const Label& label) {
          return label.name == name && (label.value == value) == is_equal;
        });
      };
      return spec.family == &catalog::meter_source_info && has("quantity", "energy", true) &&
             has("source", "hardware", false);
    });
  }

  struct Point {  // at most one of `workload` and `process` is set; none: of the device
    const MetricDescriptor* family;
    const workloads::WorkloadId* workload;
    const workloads::Process* process;
    double value;

    bool same_series(const Point& other) const noexcept {
      return family == other.family && workload == other.workload && process == other.process;
    }
  };

  /// Continues the workloads of an earlier process. Only once: afterwards this object knows better.
  void resume(bool counts_own_energy) {
    if (!settings_.costs) return;
    auto account = settings_.costs->take_earlier(identity_.info.uuid, counts_own_energy);
    if (!account) return;
    meter_.resume(*account, [this](Nanoseconds begun) { return realtime_of(begun); });
    for (const workloads::AccountEntry& entry : account->entries) {
      settings_.costs->note_earlier_facts(entry.id, *settings_.book);
    }
  }
  /// Before the first list there is nothing to be early for.
  bool is_time_to_look(const Pass& pass) const {
    if (pass.tier == device_.processes_tier()) return true;
    return meter_.is_known() && settings_.lists && settings_.lists->is_due(pass.now, asked_at_);
  }
  /// The processes of a sleeping device are not read, because that could wake it; nothing runs on it.
  bool look(const Pass& pass, PassOutcome outcome, std::optional<double> device_busy) {
    const bool is_awake = outcome == PassOutcome::complete || outcome == PassOutcome::partial;
    if (!is_awake && outcome != PassOutcome::asleep) return false;
    listed_.clear();
    Pass since_last = pass;
    const Nanoseconds last = std::exchange(asked_at_, pass.now);
    if (meter_.is_known() && pass.elapsed > Nanoseconds{0}) since_last.elapsed = pass.now - last;
    const bool knows =
        outcome == PassOutcome::asleep || device_.processes(since_last, listed_) == ReadStatus::ok;
    if (!knows) return false;
    meter_.update(pass.now, listed_, realtime_of(pass.now), device_busy);
    listed_at_ = pass.now;
    return true;
  }
  std::shared_ptr<const workloads::DeviceUse> use_of(Nanoseconds now, const Frame& frame) {
    auto use = std::make_shared<workloads::DeviceUse>();
    use->uuid = identity_.info.uuid;
    use->index = identity_.index;
    use->at = now;
    use->listed_at = listed_at_;
    use->has_energy = energy_slot_.has_value();
    use->busy_seconds = value(frame, busy_slot_);
    for (const auto& [cause, slot] : throttle_slots_) {
      if (const auto seconds = value(frame, slot)) use->throttled.emplace_back(cause, *seconds);
    }
    clock_loss_.pass(use->throttled, value(frame, clock_slot_), value(frame, clock_max_slot_));
    use->clock_lost_seconds = clock_loss_.seconds();
    use->processes = meter_.uses();
    return use;
  }
  /// Prometheus keeps start times in milliseconds.
  Nanoseconds realtime_of(Nanoseconds monotonic) const {
    if (settings_.clock == nullptr) return {};
    const Clock& clock = *settings_.clock;
    return std::chrono::floor<std::chrono::milliseconds>(clock.realtime() - (clock.monotonic() - monotonic));
  }
  double since_of(const Point& point) const {
    if (point.workload == nullptr || point.family->type != MetricType::counter) return 0;
    return to_seconds(meter_.workloads().at(*point.workload).begun);
  }
  std::optional<double> value(const Frame& frame, std::optional<std::size_t> slot) const {
    if (!slot || frame.statuses()[*slot] != ReadStatus::ok) return std::nullopt;
    return frame.values()[*slot];
  }
  void collect_points(bool with_energy) {
    points_.clear();
    if (!meter_.is_known()) return;
    Point point{};
    const auto add = [&](const MetricDescriptor& family, std::optional<double> value) {
      if (value) points_.push_back({&family, point.workload, point.process, *value});
    };
    for (const auto& [id, workload] : meter_.workloads()) {
      point.workload = &id;
      add(catalog::workload_memory_used, workload.memory_bytes);
      add(catalog::workload_busy_seconds, workload.busy_seconds);
      if (with_energy) {
        add(catalog::workload_energy, workload.energy_joules);
        if (meter_.idle_watts()) add(catalog::workload_idle_energy, workload.idle_joules);
      }
      add(catalog::workload_memory_peak, workload.peak_memory);
      add(catalog::workload_share, workload.share);
    }
    point.workload = nullptr;
    if (with_energy) add(catalog::idle_power, meter_.idle_watts());
    if (with_energy && meter_.basis()) add(catalog::meter_source_info, 1);
    if (!settings_.processes) return;
    for (const auto& [id, process] : meter_.processes()) {
      if (!process.use.present) continue;
      point.process = &process;
      add(catalog::process_memory_used, process.memory_bytes);
      add(catalog::process_busy_seconds, process.use.busy_seconds);
    }
  }
  /// Labels are built only if the set of series changes; otherwise each point keeps its slot.
  void write_series(Source& source) {
    const bool same = series_generation_ == meter_.generation() && series_basis_ == meter_.basis() &&
                      std::equal(points_.begin(), points_.end(), last_points_.begin(), last_points_.end(),
                                 [](const Point& a, const Point& b) { return a.same_series(b); });
    if (!same) {
      for (const Source::Slot slot : slots_) source.drop(slot);
      slots_.clear();
      for (const Point& point : points_) {
        slots_.push_back(source.add(*point.family, labels_of(point), SeriesPart::value, since_of(point)));
      }
      series_generation_ = meter_.generation();
      series_basis_ = meter_.basis();
    }
    for (std::size_t i = 0; i < points_.size(); ++i) source.set(slots_[i], points_[i].value);
    std::swap(points_, last_points_);
  }
  Labels labels_of(const Point& point) const {
    std::vector<Label> labels;
    if (point.workload != nullptr) {
      labels = {{"kind", std::string(to_string(point.workload->kind))}, {"workload", point.workload->name}};
    } else if (point.process == nullptr) {
      if (point.family == &catalog::meter_source_info)
        labels = {{"quantity", "workload_energy"}, {"source", std::string(to_string(*meter_.basis()))}};
    } else {
      const std::optional<std::uint32_t> uid = point.process->use.uid;
      labels = {{"pid", std::to_string(point.process->use.id.pid)},
                {"name", point.process->name},
                {"user", uid ? settings_.user_name(*uid) : std::string()}};
    }
    return device_labels_.with(labels);
  }

  ListsProcesses& device_;
  const WorkloadSettings settings_;
  workloads::DeviceMeter meter_;
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
  std::optional<workloads::Basis> series_basis_;
  // Members, to reuse their memory.
  std::vector<DeviceProcess> listed_;
  std::vector<Point> points_;
  std::vector<Point> last_points_;
};

}  // namespace gpumeter
