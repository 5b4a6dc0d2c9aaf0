#include "programs/benchmark/measure/fp8.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpumeter::benchmark {
namespace {

constexpr int kFractionBits = 3;
constexpr int kFractions = 1 << kFractionBits;
constexpr unsigned kSign = 0x80;

struct Facts {
  int bias;
  float largest;
  std::uint8_t largest_bits;
};
Facts facts_of(Fp8 encoding) noexcept {
  return encoding == Fp8::e4m3 ? Facts{7, 448, 0x7e} : Facts{8, 240, 0x7f};
}

bool is_nan(Fp8 encoding, std::uint8_t bits) noexcept {
  return encoding == Fp8::e4m3 ? (bits & 0x7fU) == 0x7f : bits == kSign;
}

}  // namespace

std::uint8_t to_fp8(Fp8 encoding, float value) noexcept {
  const Facts facts = facts_of(encoding);
  const float magnitude = std::min(std::abs(value), facts.largest);
  // Subnormal numbers have the exponent of the smallest normal one and no leading bit.
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), 1 - facts.bias) : 1 - facts.bias;
  // A fraction that rounds up to 2 carries into the exponent.
  const int fraction = static_cast<int>(std::nearbyint(std::ldexp(magnitude, kFractionBits - exponent)));
  const int code = (exponent + facts.bias - 1) * kFractions + fraction;
  const unsigned sign = std::signbit(value) && (code != 0 || encoding == Fp8::e4m3) ? kSign : 0;
  return static_cast<std::uint8_t>(sign |
                                   std::min<unsigned>(static_cast<unsigned>(code), facts.largest_bits));
}

float from_fp8(Fp8 encoding, std::uint8_t bits) noexcept {
  if (is_nan(encoding, bits)) return std::numeric_limits<float>::quiet_NaN();
  const int exponent = (bits & 0x7f) / kFractions;
  const int fraction = bits % kFractions + (exponent == 0 ? 0 : kFractions);
  const int power = std::max(exponent, 1) - facts_of(encoding).bias - kFractionBits;
  const float magnitude = std::ldexp(static_cast<float>(fraction), power);
  return (bits & kSign) != 0 ? -magnitude : magnitude;
}

float half_steps(float value) noexcept { return std::clamp(std::nearbyint(value * 2) / 2, -4.0F, 4.0F); }

}  // namespace gpumeter::benchmark
