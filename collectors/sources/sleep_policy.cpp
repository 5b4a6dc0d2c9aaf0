#include "collectors/sources/sleep_policy.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {

SleepPolicy::Verdict SleepPolicy::decide(Nanoseconds now, const PowerState& state) noexcept {
  if (state.suspended) {
    slept_ = true;
    return Verdict::rest;
  }
  const bool woken = std::exchange(slept_, false);  // woken by another program, so something runs
  if (woken || !state.may_suspend || !stirred_at_) stir(now);
  if (!look_at_) {
    if (now - *stirred_at_ < kQuiet) return Verdict::read;
    delay_ = state.delay;
    look_at_ = now + delay_ + kSlack;
  }
  return now < *look_at_ ? Verdict::rest : Verdict::look;
}

void SleepPolicy::stir(Nanoseconds now) noexcept {
  stirred_at_ = now;
  look_at_.reset();
}

// The kernel counts a look as a use: with a long delay, one look a minute would keep the device awake.
void SleepPolicy::looked(Nanoseconds now) noexcept { look_at_ = now + std::max(kLookEvery, delay_ + kSlack); }

}  // namespace gpumeter
