#include "collectors/sources/fdinfo/busy_counters.hpp"

#include <algorithm>

namespace gpumeter::fdinfo {

void BusyCounters::begin_pass(const DeviceWatch& watch, Nanoseconds now) noexcept {
  use_ = watch.latest(now, is_late_);
  if (use_ && (!has_last_ || use_->scanned_at != last_scan_)) advance(*use_);
}

// Before its first client, a class was not in use: it counts from 0.
void BusyCounters::advance(const DrmUse& use) noexcept {
  const double elapsed = has_last_ ? to_seconds(use.observed - last_observed_) : 0;
  std::optional<double> most;
  shares_ = {};
  for (std::size_t i = 0; i < kEngineClassCount; ++i) {
    if (!use.busy_seconds[i]) continue;
    const double added = *use.busy_seconds[i] - last_[i].value_or(0);
    most = std::max(most.value_or(0), added);
    if (elapsed > 0) shares_[i] = std::clamp(added / elapsed, 0.0, 1.0);
  }
  if (most) busiest_ = busiest_.value_or(0) + (has_last_ ? *most : 0);
  utilization_ = most && elapsed > 0 ? std::optional(std::min(*most / elapsed, 1.0)) : std::nullopt;
  last_ = use.busy_seconds;
  last_scan_ = use.scanned_at;
  last_observed_ = use.observed;
  has_last_ = true;
}

Sample BusyCounters::known(const std::optional<double>& value) const noexcept {
  if (!use_) return Sample::miss(is_late_ ? ReadStatus::timeout : ReadStatus::unsupported);
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::unsupported);
}

Sample BusyCounters::engine(EngineClass engine) const noexcept {
  return known(last_[static_cast<std::size_t>(engine)]);
}

Sample BusyCounters::busiest() const noexcept { return known(busiest_); }

Sample BusyCounters::utilization() const noexcept { return known(utilization_); }

Sample BusyCounters::utilization(EngineClass engine) const noexcept {
  return known(shares_[static_cast<std::size_t>(engine)]);
}

}  // namespace gpumeter::fdinfo
