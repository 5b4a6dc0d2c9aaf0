#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

/// Data types of matrices on the host. Any thread.
namespace gpumeter::benchmark {

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

}  // namespace gpumeter::benchmark
