#include "daemon/tier_schedule.hpp"

namespace gpumeter {

Nanoseconds SamplingIntervals::of(Tier tier) const noexcept {
  switch (tier) {
    case Tier::fast:
      return fast;
    case Tier::normal:
      return normal;
    case Tier::slow:
      return slow;
    case Tier::once:
      break;
  }
  return std::chrono::hours(1);
}

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
    if (is_due(tier, now)) return {tier, due_[index(tier)]};
    if (due_[index(tier)] < due_[index(earliest)]) earliest = tier;
  }
  return {earliest, due_[index(earliest)]};
}

void TierSchedule::done(Tier tier, Nanoseconds now) noexcept {
  const Nanoseconds late = now - due_[index(tier)];
  const auto missed = late < Nanoseconds{0} ? 0 : late / interval_[index(tier)];
  due_[index(tier)] += interval_[index(tier)] * (missed + 1);
}

}  // namespace gpumeter
