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

/// The time integral of a reading, over observed time only. One thread.
class Integral {
 public:
  /// Takes in the reading of a pass. `elapsed` is the observed time since the pass before, in seconds; zero
  /// says that there is nothing to integrate over (first pass, gap), and the reading is where the next
  /// interval starts from.
  void advance(Integration how, double value, double elapsed) noexcept;

  /// The reading of this pass is missing: the interval up to the next reading is not observed.
  void miss() noexcept { has_last_ = false; }

  /// Unit of the reading times seconds.
  double total() const noexcept { return total_; }

 private:
  double total_ = 0;
  double last_ = 0;
  bool has_last_ = false;
};

/// A counter of the hardware, carried over its wraps and resets, so that the exported one never goes back.
/// One thread.
class HardwareCounter {
 public:
  /// `bits` is the width at which the source wraps: 32 or 64.
  void advance(double raw, int bits) noexcept;

  /// In the source's unit.
  double total() const noexcept { return total_; }

 private:
  double total_ = 0;
  double last_ = 0;
  bool has_last_ = false;
};

}  // namespace gpumeter
