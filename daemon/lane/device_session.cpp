#include "daemon/lane/device_session.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter {

TierSchedule::TierSchedule(const SamplingIntervals& intervals, Nanoseconds start, double stagger) {
  for (const Tier tier : kTiers) {
    const Nanoseconds interval = intervals.of(tier);
    const auto shift = std::chrono::duration_cast<Nanoseconds>(interval * stagger);
    interval_[index(tier)] = interval;
    due_[index(tier)] = start + (shift > Nanoseconds{0} ? shift : interval);
  }
}

TierSchedule::Turn TierSchedule::next(Nanoseconds now) const noexcept {
  Tier earliest = Tier::fast;
  for (const Tier tier : kTiers) {  // fastest first
    if (is_due(tier, now)) return {tier, due(tier)};
    if (due(tier) < due(earliest)) earliest = tier;
  }
  return {earliest, due(earliest)};
}

Nanoseconds TierSchedule::due(Tier tier) const noexcept {
  const Nanoseconds on_grid = due_[index(tier)];
  return std::min(on_grid, retry_[index(tier)].at.value_or(on_grid));
}

void TierSchedule::done(Tier tier, Nanoseconds now, std::uint64_t failed_reads) noexcept {
  const Nanoseconds late = now - due_[index(tier)];
  if (late >= Nanoseconds{0})
    due_[index(tier)] += interval_[index(tier)] * (late / interval_[index(tier)] + 1);
  Retry& retry = retry_[index(tier)];
  if (failed_reads == 0 || failed_reads > retry.failed_reads) retry.made = 0;
  retry.failed_reads = failed_reads;
  retry.at.reset();
  if (failed_reads > 0 && ++retry.made <= kRetries) retry.at = now + kRetryEvery;
}

namespace {

// The two clocks are read one after the other, so a smaller difference comes from scheduling, not from a
// suspend.
constexpr auto kSuspendNoise = std::chrono::milliseconds(50);

constexpr std::array kObservedTiers = {Tier::fast, Tier::normal, Tier::slow};

void add_fact(std::vector<Label>& labels, const char* name, const std::string& value) {
  if (!value.empty()) labels.push_back({name, value});
}

std::string text_of(const std::optional<int>& number) {
  return number ? std::to_string(*number) : std::string();
}

std::vector<Label> facts_of(const DeviceIdentity& device) {
  const DeviceInfo& info = device.info;
  std::vector<Label> labels;
  add_fact(labels, "driver", info.driver);
  add_fact(labels, "driver_version", info.driver_version);
  add_fact(labels, "vbios_version", info.vbios_version);
  add_fact(labels, "firmware_version", info.firmware_version);
  add_fact(labels, "pci_address", info.pci_address);
  add_fact(labels, "serial", info.serial);
  add_fact(labels, "architecture", info.architecture);
  add_fact(labels, "compute_capability", info.compute_capability);
  add_fact(labels, "compute_units", text_of(info.compute_units));
  add_fact(labels, "numa_node", text_of(info.numa_node));
  add_fact(labels, "local_cpus", info.local_cpus);
  add_fact(labels, "memory_numa_node", text_of(info.memory_numa_node));
  add_fact(labels, "vendor_index", info.vendor_index);
  add_fact(labels, "minor", info.minor);
  add_fact(labels, "name", device.name);
  return labels;
}

}  // namespace

Nanoseconds ObservedTime::begin(Tier tier, const Clock& clock, Nanoseconds longest) noexcept {
  const Nanoseconds monotonic = clock.monotonic();
  const Moment now{monotonic, clock.boottime() - monotonic};
  begun_[index(tier)] = now;
  const std::optional<Moment>& last = last_[index(tier)];
  if (!last || now.suspended - last->suspended > kSuspendNoise) return Nanoseconds{0};
  const Nanoseconds elapsed = now.monotonic - last->monotonic;
  return elapsed > longest ? Nanoseconds{0} : elapsed;
}

// To the nearest nanosecond, so that to_seconds() gives the same number again: a counter that is lower by one
// after a restart would count as reset.
void ObservedTime::resume(Tier tier, double total) noexcept {
  constexpr double kMost = 9e9;  // nanoseconds have a range of 292 years
  total_[index(tier)] += Nanoseconds(std::llround(std::min(total, kMost) * 1e9));
}

DeviceSession::DeviceSession(std::unique_ptr<Device> device, DeviceIdentity identity, DeviceLabels labels,
                             std::shared_ptr<Store> store, const Clock& clock,
                             const WorkloadSettings& workloads, std::shared_ptr<DeviceTotals> totals)
    : device_(std::move(device)),
      store_(std::move(store)),
      clock_(clock),
      identity_(std::move(identity)),
      which_labels_(labels),
      source_(store_->attach(identity_.collector)),
      totals_(std::move(totals)) {
  auto* lister = dynamic_cast<ListsProcesses*>(device_.get());
  if (lister != nullptr && workloads.book) workloads_ = std::make_unique<DeviceWorkloads>(*lister, workloads);
}

Result<Done> DeviceSession::attach(const DeviceInfo& info) {
  unfinished_ = {};
  observed_.interrupt_all();
  if (Result<Done> opened = device_->attach(info); !opened) return opened;
  identity_.info = info;
  is_judged_ = was_read_ = is_silent_ = false;
  unread_passes_ = 0;
  hide();
  renew_slots();
  return Done{};
}

// Creates new slots at each attach: a series without a reading must not appear.
void DeviceSession::renew_slots() {
  const std::vector<SeriesSpec> series = all_series();
  const Labels of_device = labels();
  own_slot_ = device_->series().size();
  const std::vector<double> since = continue_totals(series);
  source_.clear();
  source_.reserve(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    source_.add(*series[i].family, of_device.with(series[i].labels), SeriesPart::value, since[i],
                since[i] > 0);
  }
  is_attached_ = true;
  if (workloads_) workloads_->attach(identity_, device_->series());
}

// Slices of a device are left out: another slice may have got the name in the meantime.
std::vector<double> DeviceSession::continue_totals(std::span<const SeriesSpec> series) {
  counted_.clear();
  std::vector<std::string> keys;
  std::vector<double> since(series.size());
  const double now = to_seconds(clock_.realtime());
  const auto total_of = [&](std::size_t slot) {
    const std::string& key = keys.emplace_back(DeviceTotals::key_of(series[slot]));
    counted_.push_back(slot);
    since[slot] = totals_->begin(key, now);
    return resumed_.insert(key).second ? totals_->find(key) : std::nullopt;
  };
  for (const std::size_t slot : device_->own_counters()) {
    const std::vector<Label>& own = series[slot].labels;
    if (std::ranges::find(own, "partition", &Label::name) != own.end()) continue;
    if (const auto total = total_of(slot)) device_->resume(slot, *total);
  }
  for (std::size_t i = 0; i < kObservedTiers.size(); ++i) {
    if (const auto total = total_of(own_slot_ + 1 + i)) observed_.resume(kObservedTiers[i], *total);
  }
  totals_->plan(keys);
  kept_.resize(counted_.size());
  return since;
}

void DeviceSession::keep_totals() noexcept {
  const Frame& frame = source_.frame();
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    kept_[i] = {frame.values()[counted_[i]], frame.statuses()[counted_[i]]};
  }
  totals_->put(kept_);
}

void DeviceSession::relabel(const std::string& name, const DeviceLabels& which) {
  const bool is_same = identity_.name == name && which_labels_ == which;
  identity_.name = name;
  which_labels_ = which;
  if (is_same || !is_attached_) return;
  const std::vector<SeriesSpec> series = all_series();
  const Labels of_device = labels();
  for (Source::Slot slot = 0; slot < series.size(); ++slot) {
    source_.relabel(slot, of_device.with(series[slot].labels));
  }
}

Labels DeviceSession::labels() const {
  return {identity_.info, identity_.index, identity_.name, which_labels_};
}

std::vector<SeriesSpec> DeviceSession::all_series() const {
  std::vector<SeriesSpec> series(device_->series().begin(), device_->series().end());
  for (SeriesSpec& own : own_series()) series.push_back(std::move(own));
  return series;
}

std::vector<SeriesSpec> DeviceSession::own_series() const {
  std::vector<SeriesSpec> series = {{&catalog::info, facts_of(identity_)}};
  for (const Tier tier : kObservedTiers) {
    series.push_back({&catalog::observed_seconds, {{"tier", std::string(to_string(tier))}}});
  }
  return series;
}

PassOutcome DeviceSession::run(Tier tier, const SamplingIntervals& intervals, const YieldCheck* yield) {
  const auto place = static_cast<std::size_t>(tier);
  std::optional<Pass>& pass = unfinished_[place];
  if (!pass) {
    const Nanoseconds elapsed = observed_.begin(tier, clock_, intervals.of(tier) + pass_deadline(tier));
    pass = Pass{tier, clock_.monotonic(), elapsed};
    failed_[place] = 0;
  }
  pass->yield = yield;
  const Pass made = *pass;
  SampleSink sink = source_.sink();
  const PassOutcome outcome = device_->sample(made, sink);
  const ReadErrors& failed = sink.errors();
  add_errors(errors_, failed);
  failed_[place] += std::accumulate(failed.begin(), failed.end(), std::uint64_t{0});
  if (outcome == PassOutcome::complete) observed_.complete(tier, made.elapsed);
  if (outcome == PassOutcome::asleep) observed_.interrupt(tier);
  if (outcome != PassOutcome::interrupted) pass.reset();
  if (outcome == PassOutcome::gone) return outcome;
  const bool was_silent = is_silent_;
  if (tier == Tier::fast) {
    fast_errors_ = failed;
    judge(outcome);
  }
  export_observed(tier);
  // After a silence, the frame still holds old values of the other tiers. The session's owner must call
  // attach() first.
  if (is_judged_ && !was_silent && !is_silent_ && !is_rebinding_) commit(made, outcome);
  return outcome;
}

// A device that was never read counts as silent after one unread pass, because it is retried in any case.
void DeviceSession::judge(PassOutcome outcome) {
  constexpr int kUnreadPasses = 3;
  is_judged_ = true;
  unread_passes_ = outcome == PassOutcome::unread ? unread_passes_ + 1 : 0;
  was_read_ = was_read_ || unread_passes_ == 0;
  const bool was_silent = is_silent_;
  is_silent_ = unread_passes_ >= (was_read_ ? kUnreadPasses : 1);
  if (is_silent_ && !was_silent) lose();
}

std::string DeviceSession::trouble() const {
  std::string text = "every read fails:";
  for (const auto& [status, name] : kReadStatusNames) {
    const std::uint64_t errors = fast_errors_[static_cast<std::size_t>(status)];
    if (errors == 0) continue;
    text += (text.ends_with(':') ? " " : ", ") + std::string(name) + " " + std::to_string(errors);
  }
  return text;
}

bool DeviceSession::has_more() noexcept { return device_->has_more(clock_.monotonic()); }

// The old slots stay in the store until the new slots are committed.
PassOutcome DeviceSession::rebind(const SamplingIntervals& intervals) {
  unfinished_ = {};
  if (!device_->attach(identity_.info)) return PassOutcome::gone;
  renew_slots();
  is_rebinding_ = true;
  PassOutcome outcome = PassOutcome::complete;
  for (const Tier tier : {Tier::once, Tier::fast, Tier::normal, Tier::slow}) {
    if (outcome != PassOutcome::gone) outcome = run(tier, intervals, nullptr);
  }
  is_rebinding_ = false;
  if (outcome != PassOutcome::gone && !is_silent_) source_.commit(clock_.monotonic());
  return outcome;
}

void DeviceSession::commit(const Pass& pass, PassOutcome outcome) {
  if (workloads_) workloads_->take(pass, outcome, source_);
  keep_totals();
  source_.commit(clock_.monotonic());
}

void DeviceSession::export_observed(Tier tier) {
  source_.set(own_slot_, 1);
  const auto place = static_cast<std::size_t>(tier);
  if (place < kObservedTiers.size()) source_.set(own_slot_ + 1 + place, to_seconds(observed_.total(tier)));
}

void DeviceSession::lose() {
  unfinished_ = {};
  observed_.interrupt_all();
  if (workloads_) workloads_->lose();
  hide();
}

void DeviceSession::release() {
  device_->release();
  lose();
}

}  // namespace gpumeter
