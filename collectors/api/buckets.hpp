#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/api/descriptor.hpp"

/// Bounds of histograms that Prometheus' native and OpenTelemetry's exponential histograms have too. Any
/// thread.
namespace gpumeter {

/// Their resolution: each bound is 2^(1/8) times the one before, 9.05 %.
inline constexpr int kSchema = 3;

/// The upper bound of bucket `index`, 2^(index/8), as the same double as in Prometheus
/// (model/histogram/generic.go, exponentialBounds).
constexpr double exponential_bound(int index) noexcept {
  constexpr double kFractions[] = {0.5,
                                   0.5452538663326288,
                                   0.5946035575013605,
                                   0.6484197773255048,
                                   0.7071067811865475,
                                   0.7711054127039704,
                                   0.8408964152537144,
                                   0.9170040432046711};
  double bound = kFractions[index & 7];
  for (int power = index >> kSchema; power >= 0; --power) bound *= 2;
  for (int power = index >> kSchema; power < -1; ++power) bound /= 2;
  return bound;
}

/// One observation of a histogram, as an example of its bucket, and the trace that explains it. Identifiers
/// are those of W3C's Trace Context: 32 and 16 lower-case hexadecimal digits.
struct Exemplar {
  double value;
  double time;  ///< Unix time in seconds at which the observation arrived
  std::string trace_id;
  std::string span_id;  ///< empty: unknown
};

/// The buckets of a histogram, or the quantiles of a summary, in the order in which its source adds them:
/// before its sum and its count. A source that adds a fine_bucket has no negative values in the histogram,
/// and all bounds of kSchema from the first to the last.
struct Buckets {
  std::vector<double> bounds = {};  ///< or quantiles
  std::vector<double> values = {};  ///< cumulative counts, or the quantiles' values
  std::vector<const Exemplar*> exemplars = {};
  bool has_fine = false;

  /// `exemplar`: null if the bucket has none.
  void add(double bound, double value, SeriesPart part, const Exemplar* exemplar) {
    bounds.push_back(bound);
    values.push_back(value);
    if (exemplar != nullptr) exemplars.push_back(exemplar);
    has_fine = has_fine || part == SeriesPart::fine_bucket;
  }
};

/// The same as an exponential histogram of kSchema. Counts are whole, as their formats have them.
struct ExponentialBuckets {
  double zero_threshold;  ///< the zero bucket has what is not above it
  std::uint64_t zero_count;
  int first;                          ///< index of the first bucket above it
  std::vector<std::uint64_t> counts;  ///< of consecutive buckets
};

inline std::uint64_t whole(double count) noexcept {
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

/// Returns nullopt unless it is exact: the finite bounds are consecutive ones of kSchema, no value is
/// negative, and none is above the last bound.
inline std::optional<ExponentialBuckets> exponential(const Buckets& buckets, double count) {
  if (!buckets.has_fine) return std::nullopt;
  const bool has_infinity = std::isinf(buckets.bounds.back());
  const std::size_t size = buckets.bounds.size() - (has_infinity ? 1 : 0);
  if (size == 0 || whole(buckets.values[size - 1]) != whole(count)) return std::nullopt;
  const int zero = static_cast<int>(std::lround(std::log2(buckets.bounds[0]) * (1 << kSchema)));
  ExponentialBuckets made{buckets.bounds[0], whole(buckets.values[0]), zero + 1, {}};
  for (std::size_t i = 0; i < size; ++i) {
    if (buckets.bounds[i] != exponential_bound(zero + static_cast<int>(i))) return std::nullopt;
    if (i > 0) made.counts.push_back(whole(buckets.values[i]) - whole(buckets.values[i - 1]));
  }
  return made;
}

}  // namespace gpumeter
