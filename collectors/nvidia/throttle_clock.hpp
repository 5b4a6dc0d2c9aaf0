#pragma once

#include "collectors/api/clock.hpp"

namespace gpumeter::nvidia {

/// How long a reason held the clocks down, by the driver's own counters. Their unit is a trap: the header
/// says nanoseconds, nvidia-smi prints microseconds, dcgm-exporter had to mend it (issue 589). So it is taken
/// from what the counter does: one that grows by more microseconds than have passed counts nanoseconds; one
/// that grows by just these while the reason holds all the time counts microseconds. Until then nanoseconds,
/// under which what is in doubt weighs a thousandth. Lane thread.
class ThrottleUnit {
 public:
  /// A counter has grown by `growth` in `elapsed`; `held`: the reason was seen at both ends.
  void learn(double growth, Nanoseconds elapsed, bool held) noexcept;
  double seconds(double growth) const noexcept { return growth * unit_; }

 private:
  double unit_ = 1e-9;
  bool is_known_ = false;
};

/// One counter's growth from pass to pass.
class Growth {
 public:
  /// Zero for the first reading and after a reset.
  double of(double raw) noexcept;
  void restart() noexcept { has_last_ = false; }

 private:
  double last_ = 0;
  bool has_last_ = false;
};

}  // namespace gpumeter::nvidia
