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
  averaged,       ///< the driver's own mean over the time before the reading: integrated backwards
  instantaneous,  ///< a value at the time of the reading: trapezoid between two readings
  state,          ///< a state or bitmask: holds from its reading to the next one
};

/// Converts raw readings to the base unit. 1e-3 has no exact double but 1e3 has: 818 mV divided by 1000 is
/// 0.818, times 1e-3 it is 0.8180000000000001. The divisor is kept because every reading needs it.
class Scale {
 public:
  /// `factor`: the source's unit to the base unit, above 0.
  constexpr Scale(double factor) noexcept  // NOLINT(google-explicit-constructor): a factor is a scale
      : by_(factor < 1 ? -1 / factor : factor) {}

  constexpr double operator()(double raw) const noexcept { return by_ < 0 ? raw / -by_ : raw * by_; }

 private:
  double by_;  // below 0: the divisor, negated
};

/// The time integral of a reading, over observed time only. One thread.
class Integral {
 public:
  /// Adds the reading of a pass. `elapsed` is the observed time since the previous pass, in seconds. If it is
  /// zero (first pass, gap), there is nothing to integrate over, and the reading starts the next interval.
  void advance(Integration how, double value, double elapsed) noexcept;

  /// Readings of this value are missing although passes were observed: the next reading starts a new
  /// interval.
  void miss() noexcept { last_ = kNone; }

  /// Continues from the total of an earlier process.
  void resume(double total) noexcept { total_ += total; }

  /// Unit of the reading times seconds.
  double total() const noexcept { return total_; }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  bool has_last() const noexcept { return last_ == last_; }
  double area(Integration how, double value, double elapsed) const noexcept {
    switch (how) {
      case Integration::none:
        return 0;
      case Integration::averaged:
        return value * elapsed;
      case Integration::instantaneous:
        return has_last() ? (last_ + value) / 2 * elapsed : 0;
      case Integration::state:
        return has_last() ? last_ * elapsed : 0;
    }
    return 0;
  }

  double total_ = 0;
  double last_ = kNone;  // no reading is NaN: it would be out of every row's range
};

inline void Integral::advance(Integration how, double value, double elapsed) noexcept {
  total_ += area(how, value, elapsed);
  last_ = value;
}

/// A hardware counter whose exported total survives wraps, resets and a change of source without jumping or
/// decreasing. One thread.
class HardwareCounter {
 public:
  /// `scale` converts the source's unit to the base unit; `bits` is the width at which the counter wraps: 32
  /// or 64.
  void advance(double raw, Scale scale, int bits) noexcept;

  /// Continues from the total of an earlier process, in the base unit. Only for a source that counts from
  /// this process's start.
  void resume(double total) noexcept { carried_ += total; }

  /// From now on another source is read; its own count does not cover the past.
  void change_source() noexcept;

  /// In the base unit.
  double total() const noexcept { return carried_ + scale_(counted_); }

 private:
  double carried_ = 0;  // base unit, of earlier sources
  double counted_ = 0;  // this source's unit
  Scale scale_ = 1;
  double last_ = 0;
  bool has_last_ = false;
  bool starts_at_zero_ = false;  // the first reading is the start of counting, not a count
};

/// Lowest and highest reading of the last minute, independent of scrapes. One bucket per second, so the
/// window is 60 s, accurate to 1 s. One thread.
class RollingExtremes {
 public:
  static constexpr std::int64_t kWindowSeconds = 60;

  void add(Nanoseconds now, double value) noexcept;

  /// Extremes of the readings in the window that ends at the last `now` passed to add().
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

  // The window consists of the end of one minute and the beginning of the next. For the previous minute, each
  // second stores the extremes from there to its end, so a reading costs two comparisons instead of a walk.
  std::int64_t minute_ = -1;
  Minute seconds_{};      // this minute, second by second
  Extremes beginning_;    // this minute so far
  Minute ends_before_{};  // the previous minute, from each second to its end
  Extremes window_;
};

}  // namespace gpumeter
