#include "daemon/lane/tier_schedule.hpp"

#include <algorithm>

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

}  // namespace gpumeter
