#pragma once

#include <optional>
#include <string>

#include "programs/benchmark/measure/element.hpp"

namespace gpumeter::benchmark {

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
