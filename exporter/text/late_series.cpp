#include "exporter/text/late_series.hpp"

namespace gpumeter {

Shown LateSeries::counter(double value, const PageTime& now) noexcept {
  const bool begins = !has_begun_ && value != 0;
  const bool was_reset = has_begun_ && value < last_;
  if ((begins && was_zero_) || was_reset) since_ = to_seconds(last_page_);
  if (begins) zero_until_ = now.monotonic + (was_zero_ ? kZeroFirst : Nanoseconds{});
  has_begun_ = has_begun_ || begins;
  was_zero_ = was_zero_ || value == 0;
  last_ = value;
  last_page_ = now.realtime;
  if (!has_begun_) return {};
  return {true, now.monotonic < zero_until_ ? 0 : value, since_};
}

}  // namespace gpumeter
