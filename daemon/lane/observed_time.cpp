#include "daemon/lane/observed_time.hpp"

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

}  // namespace gpumeter
