#include "daemon/lane/observed_time.hpp"

#include <algorithm>
#include <cmath>

namespace gpumeter {
namespace {

// The two clocks are read one after the other, so a smaller difference comes from scheduling, not from a
// suspend.
constexpr auto kSuspendNoise = std::chrono::milliseconds(50);

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

}  // namespace gpumeter
