#include "collectors/sources/fdinfo/busy_counters.hpp"

#include <algorithm>

namespace gpumeter::fdinfo {

void BusyCounters::begin_pass(const DeviceWatch& watch, Nanoseconds now) noexcept {
  use_ = watch.latest(now, is_late_);
  if (use_ && (!has_last_ || use_->scanned_at != last_scan_)) advance(*use_);
}

// Before a class had its first client, nobody used it: it counts from 0.
void BusyCounters::advance(const DrmUse& use) noexcept {
  double added = 0;
  for (std::size_t i = 0; i < kEngineClassCount; ++i) {
    added = std::max(added, use.busy_seconds[i].value_or(0) - last_[i].value_or(0));
  }
  const double elapsed = to_seconds(use.observed - last_observed_);
  if (has_last_) busiest_ += added;
  utilization_.reset();
  if (has_last_ && elapsed > 0) utilization_ = std::min(added / elapsed, 1.0);
  last_ = use.busy_seconds;
  last_scan_ = use.scanned_at;
  last_observed_ = use.observed;
  has_last_ = true;
}

Sample BusyCounters::engine(EngineClass engine) const noexcept {
  if (!use_) return Sample::miss(absent());
  const std::optional<double>& seconds = use_->busy_seconds[static_cast<std::size_t>(engine)];
  return seconds ? Sample::of(*seconds) : Sample::miss(ReadStatus::unsupported);
}

Sample BusyCounters::busiest() const noexcept { return use_ ? Sample::of(busiest_) : Sample::miss(absent()); }

Sample BusyCounters::utilization() const noexcept {
  if (!use_) return Sample::miss(absent());
  return utilization_ ? Sample::of(*utilization_) : Sample::miss(ReadStatus::unsupported);
}

}  // namespace gpumeter::fdinfo
