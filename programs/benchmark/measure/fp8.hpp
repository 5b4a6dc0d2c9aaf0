#pragma once

#include <cstdint>

/// Floating point of 8 bits with 4 bits of exponent and 3 of fraction. Any thread.
namespace gpumeter::benchmark {

/// Two encodings of the same bits. Their exponents differ by one, so one byte is not one value.
enum class Fp8 : std::uint8_t {
  e4m3,       ///< OCP OFP8 1.0: bias 7, at most 448, NaN is 0x7f and 0xff. NVIDIA, gfx950, gfx12
  e4m3_fnuz,  ///< bias 8, at most 240, the only NaN is 0x80, and there is no negative zero. gfx942
};

/// Rounds to nearest even. Values above the largest become the largest; `value` is a number.
std::uint8_t to_fp8(Fp8 encoding, float value) noexcept;
float from_fp8(Fp8 encoding, std::uint8_t bits) noexcept;

/// The nearest multiple of 1/2 between -4 and 4, which both encodings hold exactly. A product of two is a
/// multiple of 1/4. The sum of 8192 products of normally distributed values stays below 1024 (a deviation is
/// 92), so 12 bits hold it, and the tensor cores of Hopper add fp8 with about 14 (DeepSeek-V3,
/// arXiv:2412.19437, 3.3.2). Each product of matrices therefore has one right result, to the last bit.
float half_steps(float value) noexcept;

}  // namespace gpumeter::benchmark
