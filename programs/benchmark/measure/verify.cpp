#include "programs/benchmark/measure/verify.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>

namespace gpumeter::benchmark {
namespace {

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
