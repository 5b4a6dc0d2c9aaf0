#include "collectors/support/rolling_extremes.hpp"

#include <algorithm>
#include <limits>

namespace gpumeter {

void RollingExtremes::add(Nanoseconds now, double value) noexcept {
  const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  Bucket& bucket = buckets_[static_cast<std::size_t>(second % kWindowSeconds)];
  if (bucket.second != second) bucket = {second, value, value};
  bucket.min = std::min(bucket.min, value);
  bucket.max = std::max(bucket.max, value);
  scan(second);
}

void RollingExtremes::scan(std::int64_t now_second) noexcept {
  min_ = std::numeric_limits<double>::infinity();
  max_ = -min_;
  for (const Bucket& bucket : buckets_) {
    if (bucket.second <= now_second - kWindowSeconds) continue;
    min_ = std::min(min_, bucket.min);
    max_ = std::max(max_, bucket.max);
  }
}

}  // namespace gpumeter
