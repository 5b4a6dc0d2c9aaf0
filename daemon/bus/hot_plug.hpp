#pragma once

#include <chrono>
#include <optional>

#include "base/result.hpp"
#include "daemon/bus/debounce.hpp"
#include "systemd/device_monitor.hpp"

namespace gpumeter {

/// Tells when devices should be looked for anew, by what udev says. Main thread.
class HotPlug {
 public:
  /// An Error: udev cannot be heard, so that only the regular discovery finds what comes and goes.
  static Result<HotPlug> open();

  /// For poll(), beside what else the thread waits for.
  int descriptor() const noexcept { return monitor_.descriptor(); }

  /// How long to wait at the most before the next call of look_again(), of `at_most`.
  std::chrono::milliseconds patience(Nanoseconds now, std::chrono::milliseconds at_most) const noexcept;

  /// True once for a burst of events, when it is over.
  bool look_again(Nanoseconds now) noexcept;

 private:
  explicit HotPlug(systemd::DeviceMonitor monitor) noexcept;

  systemd::DeviceMonitor monitor_;
  Debounce debounce_;
};

}  // namespace gpumeter
