#include "collectors/table/integral.hpp"

namespace gpumeter {
namespace {

double area(Integration how, double last, bool has_last, double value, double elapsed) noexcept {
  switch (how) {
    case Integration::none:
      return 0;
    case Integration::averaged:
      return value * elapsed;
    case Integration::instantaneous:
      return has_last ? (last + value) / 2 * elapsed : 0;
    case Integration::state:
      return has_last ? last * elapsed : 0;
  }
  return 0;
}

constexpr double kTwoTo31 = 2147483648.0;
constexpr double kTwoTo32 = 4294967296.0;

// AMD's energy accumulator was seen to step back a little between two reads (ROCm/amdsmi issue 115);
// a reset falls to about zero. Anything between the two does not happen.
constexpr double kBackstep = 0.01;

double growth(double last, double raw, int bits) noexcept {
  if (raw >= last) return raw - last;
  if (bits == 32 && last - raw > kTwoTo31) return raw + kTwoTo32 - last;
  return raw;
}

}  // namespace

void Integral::advance(Integration how, double value, double elapsed) noexcept {
  total_ += area(how, last_, has_last_, value, elapsed);
  last_ = value;
  has_last_ = true;
}

void HardwareCounter::advance(double raw, double scale, int bits) noexcept {
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

}  // namespace gpumeter
