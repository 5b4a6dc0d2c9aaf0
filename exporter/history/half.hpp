#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gpumeter {

/// A number of 16 bits, as IEEE 754's binary16: 11 significant bits (an error of 0.05 % at the most), values
/// up to 65504. Larger ones become 65504; NaN stands for an absent value.
class Half {
 public:
  constexpr Half() noexcept = default;
  constexpr explicit Half(float value) noexcept : bits_(bits_of(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const noexcept {
    const std::uint32_t sign = (bits_ & kSign) << 16;
    const std::uint32_t exponent = bits_ & kExponent;
    const std::uint32_t magnitude = bits_ & ~kSign;
    if (exponent == kExponent) return std::bit_cast<float>(kFloatNaN);
    const float value = exponent == 0 ? static_cast<float>(magnitude) * kSmallest
                                      : std::bit_cast<float>((magnitude << 13) + kRebias);
    return sign != 0 ? -value : value;
  }

 private:
  static constexpr std::uint32_t kSign = 0x8000, kExponent = 0x7C00, kNaN = 0x7E00, kLargest = 0x7BFF;
  static constexpr std::uint32_t kFloatInfinity = 0x7F800000, kFloatNaN = 0x7FC00000;
  static constexpr std::uint32_t kRebias = (127 - 15) << 23;       // between the exponents of both formats
  static constexpr std::uint32_t kFloatNormal = (127 - 14) << 23;  // the smallest normal number of 16 bits
  static constexpr std::uint32_t kFloatLargest = 0x477FE000;       // 65504
  static constexpr float kSmallest = 1.0F / static_cast<float>(1 << 24);

  static constexpr std::uint16_t bits_of(std::uint32_t value) noexcept {
    const std::uint32_t sign = (value >> 16) & kSign;
    const std::uint32_t magnitude = value & 0x7FFFFFFF;
    if (magnitude > kFloatInfinity) return static_cast<std::uint16_t>(kNaN);
    if (magnitude >= kFloatLargest) return static_cast<std::uint16_t>(sign | kLargest);
    if (magnitude < kFloatNormal) {
      const float steps = std::bit_cast<float>(magnitude) / kSmallest + 0.5F;
      return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(steps));
    }
    // Rounds to the nearest number, and to the even one of two that are as near.
    const std::uint32_t rounded = magnitude - kRebias + 0xFFF + ((magnitude >> 13) & 1);
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
  }

  std::uint16_t bits_ = static_cast<std::uint16_t>(kNaN);
};

}  // namespace gpumeter
