#pragma once

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/access/settings.hpp"

namespace gpumeter {

/// A token bucket over all requests, full at the start. Any thread.
class RateLimiter {
 public:
  RateLimiter(const Clock& clock, RateLimit limit);

  /// Takes a token. False: the request must be refused.
  bool admit() GPUMETER_EXCLUDES(mutex_);

  bool is_on() const noexcept { return limit_.interval > Nanoseconds(0); }

 private:
  const Clock& clock_;
  const RateLimit limit_;
  Mutex mutex_;
  double tokens_ GPUMETER_GUARDED_BY(mutex_);
  Nanoseconds filled_at_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
