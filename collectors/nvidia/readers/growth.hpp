#pragma once

namespace gpumeter::nvidia {

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
