#include "exporter/access/rate_limiter.hpp"

#include <algorithm>

namespace gpumeter {

RateLimiter::RateLimiter(const Clock& clock, RateLimit limit)
    : clock_(clock), limit_(limit), tokens_(limit.burst), filled_at_(clock.monotonic()) {}

bool RateLimiter::admit() {
  if (!is_on()) return true;
  const MutexLock lock(mutex_);
  const Nanoseconds now = clock_.monotonic();
  const double earned = to_seconds(now - filled_at_) / to_seconds(limit_.interval);
  tokens_ = std::min(tokens_ + earned, static_cast<double>(limit_.burst));
  filled_at_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace gpumeter
