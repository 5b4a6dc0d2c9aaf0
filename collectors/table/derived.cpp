#include "collectors/table/derived.hpp"

namespace gpumeter {
namespace {

constexpr double kTwoTo31 = 2147483648.0;
constexpr double kTwoTo32 = 4294967296.0;

// AMD's energy accumulator was seen to step back slightly between two reads (ROCm/amdsmi issue 115). A reset
// drops it to about zero. Steps between these two sizes do not occur.
constexpr double kBackstep = 0.01;

double growth(double last, double raw, int bits) noexcept {
  if (raw >= last) return raw - last;
  if (bits == 32 && last - raw > kTwoTo31) return raw + kTwoTo32 - last;
  return raw;
}

}  // namespace

void HardwareCounter::advance(double raw, Scale scale, int bits) noexcept {
  scale_ = scale;
  if (has_last_ && raw < last_ && last_ - raw <= last_ * kBackstep) return;
  if (has_last_) counted_ += growth(last_, raw, bits);
  if (!has_last_ && !starts_at_zero_) counted_ = raw;
  last_ = raw;
  has_last_ = true;
}

void HardwareCounter::change_source() noexcept {
  carried_ = total();
  counted_ = 0;
  starts_at_zero_ = has_last_ || starts_at_zero_;
  has_last_ = false;
}

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
