#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/clock.hpp"

namespace gpumeter {

/// How a reading becomes a counter (one rule per row of a table).
enum class Integration : std::uint8_t {
  none,
  averaged,       ///< the driver's own mean over the time before the reading: counts backwards
  instantaneous,  ///< a value of this moment: trapezoid between two readings
  state,          ///< a state or bitmask: holds from its reading to the next one
};

/// A raw reading in its base unit. 1e-3 has no exact double but 1e3 has: 818 mV divided by 1000 is 0.818,
/// times 1e-3 it is 0.8180000000000001.
constexpr double scaled(double raw, double scale) noexcept {
  return scale < 1 ? raw / (1 / scale) : raw * scale;
}

/// The time integral of a reading, over observed time only. One thread.
class Integral {
 public:
  /// Takes in the reading of a pass. `elapsed` is the observed time since the pass before, in seconds; zero
  /// means that there is nothing to integrate over (first pass, gap), and the reading is where the next
  /// interval starts from.
  void advance(Integration how, double value, double elapsed) noexcept;

  /// Readings are missing that others did not wait for: the next one is where an interval starts from.
  void miss() noexcept { has_last_ = false; }

  /// Unit of the reading times seconds.
  double total() const noexcept { return total_; }

 private:
  double total_ = 0;
  double last_ = 0;
  bool has_last_ = false;
};

/// A counter of the hardware, carried over its wraps, its resets and a change of its source, so that the
/// exported one never goes back nor jumps. One thread.
class HardwareCounter {
 public:
  /// `scale` takes the source's unit to the base unit; `bits` is the width at which it wraps: 32 or 64.
  void advance(double raw, double scale, int bits) noexcept;

  /// From now on another source is read, whose own count does not cover the past.
  void change_source() noexcept;

  /// In the base unit.
  double total() const noexcept { return carried_ + scaled(counted_, scale_); }

 private:
  double carried_ = 0;  // base unit, of earlier sources
  double counted_ = 0;  // this source's unit
  double scale_ = 1;
  double last_ = 0;
  bool has_last_ = false;
  bool starts_at_zero_ = false;  // the first reading is where counting begins, not what was counted
};

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
