#include "programs/benchmark/matrix.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numbers>
#include <random>

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

/// Values are made once and repeated. The number is prime, so that no two rows of a matrix are equal.
constexpr std::size_t kDifferentValues = 100'003;
constexpr float kSmallestNormalHalf = 6.103515625e-05F;  // 2^-14
constexpr float kInt8Scale = 32;

template <class T>
void put(std::byte* place, T value) noexcept {
  std::memcpy(place, &value, sizeof value);
}

void put_as(Element element, std::byte* place, float value) noexcept {
  switch (element) {
    case Element::fp64:
      return put(place, double{value});
    case Element::fp32:
      return put(place, value);
    case Element::fp16:
      return put(place, to_half(value));
    case Element::bf16:
      return put(place, to_bfloat(value));
    case Element::int8:
      return put(place,
                 static_cast<std::int8_t>(std::clamp(std::round(value * kInt8Scale), -127.0F, 127.0F)));
    case Element::int32:
      return put(place, static_cast<std::int32_t>(std::round(value * kInt8Scale)));
    case Element::e4m3:
      return put(place, to_fp8(Fp8::e4m3, half_steps(value)));
    case Element::e4m3_fnuz:
      return put(place, to_fp8(Fp8::e4m3_fnuz, half_steps(value)));
  }
}

/// By Box and Muller: std::normal_distribution differs between libraries.
float next_normal(std::mt19937_64& random) {
  constexpr double kScale = 1.0 / 9007199254740992.0;  // 2^-53
  const double first = (static_cast<double>(random() >> 11U) + 1) * kScale;
  const double second = static_cast<double>(random() >> 11U) * kScale;
  const auto exact = std::sqrt(-2 * std::log(first)) * std::cos(2 * std::numbers::pi * second);
  const float rounded = from_bfloat(to_bfloat(static_cast<float>(exact)));
  return std::abs(rounded) < kSmallestNormalHalf ? 0 : rounded;
}

struct Half {
  std::uint16_t bits;
};
struct Bfloat {
  std::uint16_t bits;
};
template <Fp8 Encoding>
struct Fp8Bits {
  std::uint8_t bits;
};
template <Fp8 Encoding>
double value_of(Fp8Bits<Encoding> number) {
  static const auto kValues = [] {
    std::array<float, 256> values{};
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = from_fp8(Encoding, static_cast<std::uint8_t>(i));
    return values;
  }();
  return kValues[number.bits];
}
double value_of(Half half) { return from_half(half.bits); }
double value_of(Bfloat bfloat) { return from_bfloat(bfloat.bits); }
template <class T>
double value_of(T number) {
  return static_cast<double>(number);
}

template <class T>
std::vector<double> product(const MatrixView& matrix, const std::vector<double>& vector) {
  std::vector<double> result(matrix.size);
  const bool is_by_rows = matrix.column_stride == 1;
  for (std::size_t outer = 0; outer < matrix.size; ++outer) {
    const std::byte* const line =
        matrix.data + outer * (is_by_rows ? matrix.row_stride : matrix.column_stride) * sizeof(T);
    double sum = 0;
    for (std::size_t inner = 0; inner < matrix.size; ++inner) {
      T element;
      std::memcpy(&element, line + inner * sizeof(T), sizeof(T));
      if (is_by_rows) {
        sum += value_of(element) * vector[inner];
      } else {
        result[inner] += value_of(element) * vector[outer];
      }
    }
    if (is_by_rows) result[outer] = sum;
  }
  return result;
}

constexpr std::uint64_t kSeed = 0x9e3779b97f4a7c15;
constexpr double kDeviations = 20;

std::vector<double> random_signs(std::size_t count) {
  std::mt19937_64 random(kSeed);
  std::vector<double> signs(count);
  for (double& sign : signs) sign = (random() >> 63U) != 0 ? 1 : -1;
  return signs;
}

/// An element of c is a sum of n products with deviation 1. Each of its n additions rounds a partial sum of
/// deviation up to sqrt(n), so its error has a deviation of about rounding * n / 3. The check adds n
/// elements. Exact products differ by a quarter at least.
double tolerance(double rounding, std::size_t size) {
  const auto n = static_cast<double>(size);
  return kDeviations * rounding * n / 3 * std::sqrt(n) + (rounding == kExact ? 0.125 : 0);
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

std::size_t size_of(Element element) noexcept {
  switch (element) {
    case Element::fp64:
      return 8;
    case Element::fp32:
    case Element::int32:
      return 4;
    case Element::fp16:
    case Element::bf16:
      return 2;
    case Element::int8:
    case Element::e4m3:
    case Element::e4m3_fnuz:
      return 1;
  }
  return 0;
}

std::uint16_t to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const float magnitude = std::abs(value);
  if (!(magnitude < 65520.0F))  // rounds to infinity, or is no number
    return static_cast<std::uint16_t>(sign | (std::isnan(value) ? 0x7e00U : 0x7c00U));
  if (magnitude < kSmallestNormalHalf)  // multiples of 2^-24; nearbyint rounds to even
    return static_cast<std::uint16_t>(sign |
                                      static_cast<std::uint32_t>(std::nearbyint(magnitude * 16777216.0F)));
  const std::uint32_t rebased = (bits & 0x7fffffffU) - (112U << 23U);
  return static_cast<std::uint16_t>(sign | ((rebased + 0xfffU + ((rebased >> 13U) & 1U)) >> 13U));
}

float from_half(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t rest = bits & 0x7fffU;
  if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | ((rest & 0x3ffU) << 13U));
  const float magnitude = rest < 0x400U ? static_cast<float>(rest) / 16777216.0F
                                        : std::bit_cast<float>((rest << 13U) + (112U << 23U));
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t to_bfloat(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

float from_bfloat(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::vector<std::byte> normal_elements(Element element, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::size_t size = size_of(element);
  std::vector<std::byte> bytes(count * size);
  const std::size_t different = std::min(count, kDifferentValues);
  for (std::size_t i = 0; i < different; ++i) put_as(element, &bytes[i * size], next_normal(random));
  for (std::size_t done = different; done < count;) {
    const std::size_t more = std::min(different, count - done);
    std::memcpy(&bytes[done * size], bytes.data(), more * size);
    done += more;
  }
  return bytes;
}

std::vector<double> times(const MatrixView& matrix, const std::vector<double>& vector) {
  switch (matrix.element) {
    case Element::fp64:
      return product<double>(matrix, vector);
    case Element::fp32:
      return product<float>(matrix, vector);
    case Element::fp16:
      return product<Half>(matrix, vector);
    case Element::bf16:
      return product<Bfloat>(matrix, vector);
    case Element::int8:
      return product<std::int8_t>(matrix, vector);
    case Element::int32:
      return product<std::int32_t>(matrix, vector);
    case Element::e4m3:
      return product<Fp8Bits<Fp8::e4m3>>(matrix, vector);
    case Element::e4m3_fnuz:
      return product<Fp8Bits<Fp8::e4m3_fnuz>>(matrix, vector);
  }
  return {};
}

std::optional<std::string> wrong_product(const MatrixView& a, const MatrixView& b, const MatrixView& c,
                                         double rounding) {
  const std::vector<double> signs = random_signs(a.size);
  const std::vector<double> expected = times(a, times(b, signs));
  const std::vector<double> found = times(c, signs);
  const double limit = tolerance(rounding, a.size);
  for (std::size_t row = 0; row < a.size; ++row) {
    const double difference = std::abs(expected[row] - found[row]);
    if (difference <= limit) continue;  // false for NaN
    char text[160];
    std::snprintf(text, sizeof text, "row %zu of %zu differs by %.3g from the right product; %.3g is allowed",
                  row, a.size, difference, limit);
    return text;
  }
  return std::nullopt;
}

}  // namespace gpumeter::benchmark
