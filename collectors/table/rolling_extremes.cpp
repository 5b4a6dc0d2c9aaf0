#include "collectors/table/rolling_extremes.hpp"

namespace gpumeter {

void RollingExtremes::add(Nanoseconds now, double value) noexcept {
  const std::int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  if (second / kWindowSeconds != minute_) turn(second / kWindowSeconds);
  const auto place = static_cast<std::size_t>(second % kWindowSeconds);
  seconds_[place].take({value, value});
  beginning_.take({value, value});
  window_ = beginning_;
  if (place + 1 < ends_before_.size()) window_.take(ends_before_[place + 1]);
}

void RollingExtremes::turn(std::int64_t minute) noexcept {
  ends_before_.fill({});
  if (minute == minute_ + 1) {
    Extremes end;
    for (std::size_t i = seconds_.size(); i-- > 0;) {
      end.take(seconds_[i]);
      ends_before_[i] = end;
    }
  }
  seconds_.fill({});
  beginning_ = {};
  minute_ = minute;
}

}  // namespace gpumeter
