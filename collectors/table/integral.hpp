#pragma once

#include <cstdint>

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
  /// says that there is nothing to integrate over (first pass, gap), and the reading is where the next
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

  /// From now on another source is read, whose own count says nothing of the past.
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

}  // namespace gpumeter
