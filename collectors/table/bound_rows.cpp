#include "collectors/table/bound_rows.hpp"

#include <algorithm>
#include <iterator>

namespace gpumeter {
namespace {

// A counter survives a short failure; an old gauge would be wrong (metrics.md, rule 9).
constexpr int kCounterFailures = 3;

// An unsupported source is always retried: a first poll that returned "not supported" was wrong later (ROCm
// device-metrics-exporter 1.5.0, MI350X). The interval never applies to a source that once had a value,
// because a card under reset returns the same status.
constexpr auto kRetryUnsupported = std::chrono::minutes(5);

// How long a counter's source may fail before the other counters continue without it. Its own counter is
// omitted from the page by then.
constexpr auto kGiveUp = std::chrono::seconds(60);

// gpu_energy_joules_total -> energy
std::string quantity_of(const MetricDescriptor& counter) {
  std::string_view name = counter.name;
  name.remove_prefix(std::string_view("gpu_").size());
  name.remove_suffix(std::string_view("_total").size());
  if (!counter.unit.empty()) name.remove_suffix(counter.unit.size() + 1);
  return std::string(name);
}

std::vector<Label> with_partition(const std::string& partition, std::vector<Label> labels) {
  if (!partition.empty()) labels.insert(labels.begin(), {"partition", partition});
  return labels;
}

constexpr unsigned bit(RowState::Outcome outcome) noexcept { return 1U << static_cast<unsigned>(outcome); }

}  // namespace

void SeriesPlan::begin_partition(const Partition& partition) {
  partition_ = partition.name;
  std::vector<std::vector<Label>> parts = partition.parts;
  if (parts.empty()) parts.emplace_back();
  for (const std::vector<Label>& part : parts) {
    std::vector<Label> facts = partition.facts;
    facts.insert(facts.end(), part.begin(), part.end());
    add_constant({&catalog::partition_info, with_partition(partition.name, std::move(facts))});
  }
}

void SeriesPlan::add_constant(SeriesSpec series) {
  constants_.push_back(series_.size());
  series_.push_back(std::move(series));
}

std::size_t SeriesPlan::add(std::vector<SeriesSpec> series) {
  const std::size_t first = series_.size();
  std::ranges::move(series, std::back_inserter(series_));
  return first;
}

bool SeriesPlan::has(const MetricDescriptor& family, const LabelSet& labels) const {
  const auto known = planned_.find({&family, partition_});
  return known != planned_.end() && std::ranges::find(known->second, labels) != known->second.end();
}

std::optional<std::size_t> SeriesPlan::add(const MetricDescriptor& family, const LabelSet& labels) {
  if (has(family, labels)) return std::nullopt;
  planned_[{&family, partition_}].push_back(labels);
  series_.push_back({&family, with_partition(partition_, labels.labels())});
  return series_.size() - 1;
}

std::size_t SeriesPlan::add_source(const MetricDescriptor& counter, std::string_view source) {
  const auto [known, is_new] = sources_.try_emplace(quantity_of(counter), series_.size());
  if (is_new) {
    series_.push_back(
        {&catalog::meter_source_info, {{"quantity", known->first}, {"source", std::string(source)}}});
  }
  return known->second;
}

bool RowState::plan(const RowFacts& row, bool settles, SeriesPlan& plan) {
  const Derived& derived = row.derived;
  const LabelSet labels = row.labels.unpacked();
  const std::optional<std::size_t> value = plan.add(*row.family, labels);
  if (!value) return false;
  value_ = number_of(value);
  counter_ = max_ = min_ = source_ = kNone;
  has_extremes_ = false;
  is_counter_ = row.family->type == MetricType::counter;
  if (row_ != nullptr && row_ != &row) {
    hardware_.change_source();
    has_worked_ = false;
  }
  row_ = &row;
  traits_ = row.traits;
  how_ = derived.how;
  scale_ = row.scale;
  if (is_counter_) source_ = number_of(plan.add_source(*row.family, row.traits->counted_by));
  if (derived.counter != nullptr) {
    counter_ = number_of(plan.add(*derived.counter, labels));
    if (counter_ != kNone) source_ = number_of(plan.add_source(*derived.counter, "integrated"));
  }
  is_integrating_ = (settles && is_counter_) || counter_ != kNone;
  if (derived.extremes == nullptr) return true;
  const LabelSet window("window", "1m");
  max_ = number_of(plan.add(*derived.extremes->max, window));
  min_ = number_of(plan.add(*derived.extremes->min, window));
  has_extremes_ = max_ != kNone && min_ != kNone;
  if (!extremes_) extremes_ = std::make_unique<RollingExtremes>();
  return true;
}

// The counts of DRM clients are kept by this process too.
std::optional<std::size_t> RowState::own_counter() const noexcept {
  if (counter_ != kNone) return counter_;
  const bool is_own = is_counter_ && (is_integrating_ || traits_->counted_by != "hardware");
  return is_own ? std::optional<std::size_t>(value_) : std::nullopt;
}

void RowState::resume(double total) noexcept {
  if (is_counter_) return hardware_.resume(total);
  integral_.resume(total);
}

void RowState::attach() noexcept {
  has_succeeded_ = false;
  failures_ = 0;
  next_try_ = Nanoseconds{0};
  has_kept_ = false;
}

// Not a good reading: its source had none, or none that is possible.
RowState::Outcome RowState::refuse(const Pass& pass, Sample raw, SampleSink& sink) noexcept {
  if (raw.status == ReadStatus::unsupported && traits_->forgets) {
    miss(pass.now, raw.status, sink);
    return Outcome::idle;
  }
  if (raw.status == ReadStatus::unsupported && !has_worked_) {
    next_try_ = pass.now + kRetryUnsupported;
    return Outcome::idle;
  }
  if (raw.status == ReadStatus::ok && traits_->zero_is_unknown && raw.value == 0) {  // no error
    return miss(pass.now, ReadStatus::unsupported, sink) ? Outcome::gap : Outcome::idle;
  }
  const ReadStatus why = raw.status == ReadStatus::ok ? ReadStatus::out_of_range : raw.status;
  sink.count_error(why);
  return miss(pass.now, why, sink) ? Outcome::gap : Outcome::failed;
}

// A count over observed time waits for the end of the pass.
void RowState::take_count(double raw, SampleSink& sink) noexcept {
  has_kept_ = is_integrating_;
  kept_ = raw;
  if (!is_integrating_) count(raw, sink);
}

void RowState::count(double raw, SampleSink& sink) noexcept {
  hardware_.advance(raw, scale_, traits_->counter_bits);
  sink.set(value_, hardware_.total());
}

void RowState::extend(Nanoseconds now, double value, SampleSink& sink) noexcept {
  extremes_->add(now, value);
  sink.set(max_, extremes_->max());
  sink.set(min_, extremes_->min());
}

// True if a counter lacks this reading.
bool RowState::miss(Nanoseconds now, ReadStatus why, SampleSink& sink) noexcept {
  miss_gauges(why, sink);
  if (failures_ == 0) failing_since_ = now;
  if (failures_ < kCounterFailures) ++failures_;
  const bool has_left = failures_ >= kCounterFailures || traits_->forgets;
  if (has_left) miss_counters(why, sink);
  const bool is_given_up = has_left && now - failing_since_ >= kGiveUp;
  if (is_given_up) integral_.miss();
  return is_integrating_ && has_succeeded_ && !is_given_up;
}

void RowState::rest(SampleSink& sink) noexcept {
  has_kept_ = false;
  integral_.miss();
  miss_gauges(ReadStatus::unsupported, sink);
}

void RowState::miss_gauges(ReadStatus why, SampleSink& sink) noexcept {
  if (!is_counter_) sink.miss(value_, why);
  if (max_ != kNone) sink.miss(max_, why);
  if (min_ != kNone) sink.miss(min_, why);
}

void RowState::miss_counters(ReadStatus why, SampleSink& sink) noexcept {
  if (is_counter_) sink.miss(value_, why);
  if (counter_ != kNone) sink.miss(counter_, why);
}

void BoundRows::clear() noexcept { *this = {}; }

void BoundRows::add(const RowFacts& row, RowState& state, Reader read) {
  if (state.integrates()) integrating_.push_back(&state);
  if (read.settles()) counting_.push_back(rows_.size());
  rows_.push_back({&state, std::move(read), row.traits->wakes});
}

inline void BoundRows::sample_row(const Pass& pass, Bound& row, SampleSink& sink, Seen& seen) noexcept {
  if (!row.state->due(pass.now)) return;
  const unsigned outcome = bit(row.state->take(pass, row.read(), sink));
  seen.all |= outcome;
  if (row.wakes) seen.awake |= outcome;
}

bool BoundRows::sample(const Pass& pass, bool is_asleep, SampleSink& sink) noexcept {
  Seen seen = seen_;
  std::size_t next = std::exchange(cursor_, 0);
  for (; next < rows_.size(); ++next) {
    if (pass.yield != nullptr && pass.yield->should_yield()) {
      cursor_ = next;
      break;
    }
    Bound& row = rows_[next];
    if (is_asleep && row.wakes) {
      row.state->rest(sink);
    } else {
      sample_row(pass, row, sink, seen);
    }
  }
  seen_ = seen;
  return next == rows_.size();
}

PassOutcome BoundRows::outcome() const noexcept {
  using enum RowState::Outcome;
  if ((seen_.awake & (bit(failed) | bit(gap))) != 0 && (seen_.awake & bit(good)) == 0) {
    return PassOutcome::unread;
  }
  return (seen_.all & bit(gap)) != 0 ? PassOutcome::partial : PassOutcome::complete;
}

void BoundRows::settle(const Pass& pass, bool is_observed, SampleSink& sink) noexcept {
  const double elapsed = to_seconds(pass.elapsed);
  for (RowState* const state : integrating_) state->settle(elapsed, is_observed, sink);
  for (const std::size_t place : counting_) rows_[place].read.settle(is_observed);
}

void BoundRows::list_own_counters(std::vector<std::size_t>& slots) const {
  for (const Bound& row : rows_) {
    if (const auto slot = row.state->own_counter()) slots.push_back(*slot);
  }
}

bool BoundRows::resume(std::size_t slot, double total) noexcept {
  const auto found =
      std::ranges::find_if(rows_, [&](const Bound& row) { return row.state->own_counter() == slot; });
  if (found == rows_.end()) return false;
  found->state->resume(total);
  return true;
}

}  // namespace gpumeter
