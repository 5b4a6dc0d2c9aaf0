#include "collectors/nvidia/throttle_clock.hpp"

#include <utility>

namespace gpumeter::nvidia {
namespace {

constexpr double kMicroseconds = 1e6;  // in a second

// The counter and the clock are not read at the same moment.
constexpr double kMoreThanPassed = 1.5;
constexpr double kAllOfIt = 0.5;

}  // namespace

void ThrottleUnit::learn(double growth, Nanoseconds elapsed, bool held) noexcept {
  const double microseconds = to_seconds(elapsed) * kMicroseconds;
  if (is_known_ || growth <= 0 || microseconds <= 0) return;
  const bool is_nano = growth > microseconds * kMoreThanPassed;
  const bool is_micro = !is_nano && held && growth > microseconds * kAllOfIt;
  if (is_micro) unit_ = 1e-6;
  is_known_ = is_nano || is_micro;
}

double Growth::of(double raw) noexcept {
  const double last = std::exchange(last_, raw);
  return std::exchange(has_last_, true) && raw > last ? raw - last : 0;
}

}  // namespace gpumeter::nvidia
