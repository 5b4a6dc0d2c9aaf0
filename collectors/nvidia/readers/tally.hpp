#pragma once

#include <array>
#include <utility>

#include "collectors/api/sample.hpp"

namespace gpumeter::nvidia {

/// One counter's growth from pass to pass.
class Growth {
 public:
  /// Returns zero for the first reading and after a reset.
  double of(double raw) noexcept {
    const double last = std::exchange(last_, raw);
    return std::exchange(has_last_, true) && raw > last ? raw - last : 0;
  }
  void restart() noexcept { has_last_ = false; }

 private:
  double last_ = 0;
  bool has_last_ = false;
};

/// A counter that a reader computes from its own readings in each pass.
struct Tally {
  double total = 0;
  std::array<Growth, 2> growth{};  ///< of the counters behind this one

  Sample add(double amount) noexcept { return Sample::of(total += amount); }
  void restart() noexcept {
    for (Growth& each : growth) each.restart();
  }
};

}  // namespace gpumeter::nvidia
