#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/clock.hpp"

namespace gpumeter {

/// Lowest and highest reading of the last minute, whoever scrapes and how often. One bucket a second, so
/// the window is 60 s to within one. One thread.
class RollingExtremes {
 public:
  static constexpr std::int64_t kWindowSeconds = 60;

  void add(Nanoseconds now, double value) noexcept;

  /// Both are of the readings that add() was given in the window that ends at its last `now`.
  double max() const noexcept { return window_.max; }
  double min() const noexcept { return window_.min; }

 private:
  struct Extremes {
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();

    void take(const Extremes& other) noexcept {
      min = std::min(min, other.min);
      max = std::max(max, other.max);
    }
  };
  using Minute = std::array<Extremes, kWindowSeconds>;

  void turn(std::int64_t minute) noexcept;

  // The window is the end of one minute and the beginning of the next. Of the one before, each second holds
  // the extremes from there to its end, so that a reading costs two comparisons instead of a walk.
  std::int64_t minute_ = -1;
  Minute seconds_{};      // this minute, second by second
  Extremes beginning_;    // this minute so far
  Minute ends_before_{};  // the minute before, from each second to its end
  Extremes window_;
};

}  // namespace gpumeter
