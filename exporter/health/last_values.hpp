#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "exporter/health/window.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter::health {

/// The last values of the series of one family. A gauge leaves the store at its first failed read. Its last
/// value counts a while longer, so that one failed read neither ends a finding nor restarts a hold time.
class LastValues {
 public:
  /// How long the last value counts. The slow tier reads once a minute: two failed reads in a row are
  /// bridged, a source that fails for good is not.
  static constexpr Nanoseconds kKept = std::chrono::minutes(2);

  /// The family's list has changed from `before` to `after`: each series keeps its last value.
  void rearrange(std::span<const Labels> before, std::span<const Labels> after);

  /// Returns the value of the series at this position, or the last one if it is absent (NaN) for no longer
  /// than kKept. `is_read`: the device is awake and not lost; otherwise an absent value is absent at once.
  double add(std::size_t position, double value, bool is_read, Nanoseconds now) noexcept;

 private:
  struct Last {
    double value = kAbsent;
    Nanoseconds at{};  ///< CLOCK_MONOTONIC
  };

  std::vector<Last> lasts_;  ///< by position
};

}  // namespace gpumeter::health
