#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumeter::benchmark {

// Data types of matrices on the host. Any thread.

enum class Element : std::uint8_t {
  fp64,
  fp32,
  fp16,
  bf16,
  int8,
  int32,
  e4m3,       ///< fp8 as in Fp8
  e4m3_fnuz,  ///< the same
};

/// Size of one element in bytes.
std::size_t size_of(Element element) noexcept;

/// IEEE 754 half precision and bfloat16, both rounded to nearest even. Subnormal halves are exact.
std::uint16_t to_half(float value) noexcept;
float from_half(std::uint16_t bits) noexcept;
std::uint16_t to_bfloat(float value) noexcept;
float from_bfloat(std::uint16_t bits) noexcept;

/// `count` elements with a normal distribution (mean 0, deviation 1), the same for each seed. The power of a
/// device depends on the data (arXiv:2212.08805), so all runs use the same. Each value is one of bf16 that
/// fp16 holds too, so every larger type holds it exactly; int8 has 32 times the value, rounded, and fp8 the
/// value by half_steps().
std::vector<std::byte> normal_elements(Element element, std::size_t count, std::uint64_t seed);

/// A square matrix in memory. Element (row, column) is at row * row_stride + column * column_stride, and one
/// of the strides is 1.
struct MatrixView {
  const std::byte* data = nullptr;
  Element element = Element::fp32;
  std::size_t size = 0;
  std::size_t row_stride = 0;
  std::size_t column_stride = 0;
};

inline MatrixView by_rows(const std::vector<std::byte>& data, Element element, std::size_t size) {
  return {data.data(), element, size, size, 1};
}
inline MatrixView by_columns(const std::vector<std::byte>& data, Element element, std::size_t size) {
  return {data.data(), element, size, 1, size};
}

/// The matrix times a vector, in double precision.
std::vector<double> times(const MatrixView& matrix, const std::vector<double>& vector);

// Floating point of 8 bits with 4 bits of exponent and 3 of fraction. Any thread.

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

inline double operations_of_product(std::size_t size) noexcept {
  const auto n = static_cast<double>(size);
  return 2 * n * n * n;
}

/// Relative error of one addition on the device.
inline constexpr double kFp64Rounding = 1.0 / (1ULL << 52U);
inline constexpr double kFp32Rounding = 1.0 / (1U << 23U);
/// Matrix units drop bits of their partial sums, so they are given eight times the error.
inline constexpr double kMatrixUnitRounding = 8 * kFp32Rounding;
inline constexpr double kExact = 0;  ///< integers, and quarters of fp8

/// Checks `c` = `a` * `b` by Freivalds' method (IFIP 1977): for a vector r of +1 and -1, a * (b * r) must
/// equal c * r. One wrong element of `c` changes one sum. The time is that of three products of a matrix and
/// a vector. Sums may differ by 20 standard deviations of the rounding errors that `rounding` causes. Returns
/// a sentence with the first wrong row, or nullopt if the product is right. Any thread.
std::optional<std::string> wrong_product(const MatrixView& a, const MatrixView& b, const MatrixView& c,
                                         double rounding);

}  // namespace gpumeter::benchmark
