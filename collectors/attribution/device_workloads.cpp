#include "collectors/attribution/device_workloads.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter::workloads {

void ClockLoss::pass(std::span<const Throttled> throttled, std::optional<double> clock,
                     std::optional<double> most) {
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

}  // namespace gpumeter::workloads

namespace gpumeter {
namespace {

std::optional<std::size_t> slot_of(std::span<const SeriesSpec> series, const MetricDescriptor& family,
                                   const std::vector<Label>& labels = {}) {
  const auto found = std::find_if(series.begin(), series.end(), [&](const SeriesSpec& spec) {
    return spec.family == &family && spec.labels == labels;
  });
  if (found == series.end()) return std::nullopt;
  return static_cast<std::size_t>(found - series.begin());
}

// gpu_meter_source_info states the origin of each counter.
bool counts_own_energy(std::span<const SeriesSpec> series) {
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

}  // namespace

DeviceWorkloads::DeviceWorkloads(ListsProcesses& device, WorkloadSettings settings)
    : device_(device),
      settings_(std::move(settings)),
      meter_(settings_.procfs, settings_.processes, settings_.book) {}

DeviceWorkloads::~DeviceWorkloads() { settings_.book->withdraw(use_); }

void DeviceWorkloads::attach(const DeviceIdentity& identity, std::span<const SeriesSpec> series) {
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

// Continues the workloads of an earlier process. Only once: afterwards this object knows better.
void DeviceWorkloads::resume(bool counts_own_energy) {
  if (!settings_.costs) return;
  auto account = settings_.costs->take_earlier(identity_.info.uuid, counts_own_energy);
  if (!account) return;
  costs_.resume(*account);
  for (workloads::AccountEntry& entry : account->entries) entry.begun = realtime_of(entry.begun);
  meter_.resume(*account);
  for (const workloads::AccountEntry& entry : account->entries) {
    settings_.costs->note_earlier_facts(entry.id, *settings_.book);
  }
}

void DeviceWorkloads::take(const Pass& pass, PassOutcome outcome, Source& source) {
  const Frame& frame = source.frame();
  const std::optional<double> energy = value(frame, energy_slot_);
  if (energy) meter_.add_energy(*energy);
  const bool has_looked = is_time_to_look(pass) && look(pass, outcome);
  if (meter_.is_known()) {
    workloads::DeviceReadings now_read = readings(frame);
    if (settings_.costs) keep_costs(pass.now, has_looked, now_read);
    publish(pass.now, frame, std::move(now_read));
  }
  collect_points(energy.has_value());
  write_series(source);
}

// Before the first list there is nothing to be early for.
bool DeviceWorkloads::is_time_to_look(const Pass& pass) const {
  if (pass.tier == device_.processes_tier()) return true;
  return meter_.is_known() && settings_.lists && settings_.lists->is_due(pass.now, asked_at_);
}

// The processes of a sleeping device are not read, because that could wake it; nothing runs on it.
bool DeviceWorkloads::look(const Pass& pass, PassOutcome outcome) {
  const bool is_awake = outcome == PassOutcome::complete || outcome == PassOutcome::partial;
  if (!is_awake && outcome != PassOutcome::asleep) return false;
  listed_.clear();
  Pass since_last = pass;
  const Nanoseconds last = std::exchange(asked_at_, pass.now);
  if (meter_.is_known() && pass.elapsed > Nanoseconds{0}) since_last.elapsed = pass.now - last;
  const bool knows =
      outcome == PassOutcome::asleep || device_.processes(since_last, listed_) == ReadStatus::ok;
  if (!knows) return false;
  meter_.update(pass.now, listed_, realtime_of(pass.now));
  listed_at_ = pass.now;
  return true;
}

workloads::DeviceReadings DeviceWorkloads::readings(const Frame& frame) const {
  workloads::DeviceReadings readings{value(frame, energy_slot_), value(frame, busy_slot_)};
  for (const auto& [cause, slot] : throttle_slots_) {
    if (const auto seconds = value(frame, slot)) readings.throttled.emplace_back(cause, *seconds);
  }
  return readings;
}

void DeviceWorkloads::keep_costs(Nanoseconds now, bool has_looked,
                                 const workloads::DeviceReadings& readings) {
  costs_.pass(meter_, readings);
  if (has_looked) costs_.look(now, meter_, readings);
  settings_.costs->publish(costs_.account(identity_.info.uuid, identity_.index, meter_, readings));
}

void DeviceWorkloads::publish(Nanoseconds now, const Frame& frame, workloads::DeviceReadings readings) {
  clock_loss_.pass(readings.throttled, value(frame, clock_slot_), value(frame, clock_max_slot_));
  auto use = std::make_shared<workloads::DeviceUse>();
  use->uuid = identity_.info.uuid;
  use->index = identity_.index;
  use->at = now;
  use->listed_at = listed_at_;
  use->has_energy = energy_slot_.has_value();
  use->busy_seconds = readings.busy_seconds;
  use->throttled = std::move(readings.throttled);
  use->clock_lost_seconds = clock_loss_.seconds();
  use->processes = meter_.uses();
  use_ = std::move(use);
  settings_.book->publish(use_);
}

void DeviceWorkloads::lose() {
  meter_.interrupt();
  costs_.interrupt();
  clock_loss_.interrupt();
  settings_.book->withdraw(std::exchange(use_, nullptr));
}

std::optional<double> DeviceWorkloads::value(const Frame& frame, std::optional<std::size_t> slot) const {
  if (!slot || frame.statuses()[*slot] != ReadStatus::ok) return std::nullopt;
  return frame.values()[*slot];
}

void DeviceWorkloads::collect_points(bool with_energy) {
  points_.clear();
  if (!meter_.is_known()) return;
  for (const workloads::WorkloadEntry& entry : meter_.workloads()) add_points(entry, with_energy);
  if (!settings_.processes) return;
  for (const auto& [id, process] : meter_.processes()) add_points(process);
}

void DeviceWorkloads::add_points(const workloads::WorkloadEntry& entry, bool with_energy) {
  const auto& [id, workload] = entry;
  const auto add = [&](const MetricDescriptor& family, std::optional<double> value) {
    if (value) points_.push_back({&family, &id, nullptr, *value});
  };
  add(catalog::workload_memory_used, workload.memory_bytes);
  add(catalog::workload_busy_seconds, workload.busy_seconds);
  if (with_energy) add(catalog::workload_energy, workload.energy_joules);
  add(catalog::workload_memory_peak, workload.peak_memory);
  add(catalog::workload_share, workload.share);
}

void DeviceWorkloads::add_points(const workloads::Process& process) {
  if (!process.use.present) return;
  const auto add = [&](const MetricDescriptor& family, std::optional<double> value) {
    if (value) points_.push_back({&family, nullptr, &process, *value});
  };
  add(catalog::process_memory_used, process.memory_bytes);
  add(catalog::process_busy_seconds, process.use.busy_seconds);
}

// Labels are built only if the set of series changes; otherwise each point keeps its slot.
void DeviceWorkloads::write_series(Source& source) {
  const bool same = series_generation_ == meter_.generation() &&
                    std::equal(points_.begin(), points_.end(), last_points_.begin(), last_points_.end(),
                               [](const Point& a, const Point& b) { return a.same_series(b); });
  if (!same) {
    for (const Source::Slot slot : slots_) source.drop(slot);
    slots_.clear();
    for (const Point& point : points_) {
      slots_.push_back(source.add(*point.family, labels_of(point), SeriesPart::value, since_of(point)));
    }
    series_generation_ = meter_.generation();
  }
  for (std::size_t i = 0; i < points_.size(); ++i) source.set(slots_[i], points_[i].value);
  std::swap(points_, last_points_);
}

// Prometheus keeps start times in milliseconds.
Nanoseconds DeviceWorkloads::realtime_of(Nanoseconds monotonic) const {
  if (settings_.clock == nullptr) return {};
  const Clock& clock = *settings_.clock;
  return std::chrono::floor<std::chrono::milliseconds>(clock.realtime() - (clock.monotonic() - monotonic));
}

double DeviceWorkloads::since_of(const Point& point) const {
  if (point.workload == nullptr || point.family->type != MetricType::counter) return 0;
  return to_seconds(meter_.workloads().at(*point.workload).begun);
}

Labels DeviceWorkloads::labels_of(const Point& point) const {
  std::vector<Label> labels;
  if (point.workload != nullptr) {
    labels = {{"kind", std::string(to_string(point.workload->kind))}, {"workload", point.workload->name}};
  } else {
    const std::optional<std::uint32_t> uid = point.process->use.uid;
    labels = {{"pid", std::to_string(point.process->use.id.pid)},
              {"name", point.process->name},
              {"user", uid ? settings_.user_name(*uid) : std::string()}};
  }
  return device_labels_.with(labels);
}

}  // namespace gpumeter
