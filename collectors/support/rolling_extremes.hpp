#pragma once

#include <array>
#include <cstdint>

#include "collectors/api/clock.hpp"

namespace gpumeter {

/// Lowest and highest reading of the last minute, whoever scrapes and how often. One bucket a second, so
/// the window is 60 s to within one. One thread.
class RollingExtremes {
 public:
  static constexpr std::int64_t kWindowSeconds = 60;

  void add(Nanoseconds now, double value) noexcept;

  /// Both are of the readings that add() was given in the window that ends at its last `now`.
  double max() const noexcept { return max_; }
  double min() const noexcept { return min_; }

 private:
  struct Bucket {
    std::int64_t second = -kWindowSeconds;
    double min = 0;
    double max = 0;
  };
  void scan(std::int64_t now_second) noexcept;

  std::array<Bucket, kWindowSeconds> buckets_{};
  double min_ = 0;
  double max_ = 0;
};

}  // namespace gpumeter
