#pragma once

#include <chrono>
#include <optional>

#include "base/result.hpp"
#include "daemon/bus/debounce.hpp"
#include "systemd/device_monitor.hpp"

namespace gpumeter {

/// Reports when devices should be discovered again, based on udev's events. Main thread.
class HotPlug {
 public:
  /// Returns an Error if udev is not available. Only the regular discovery then finds added and removed
  /// devices.
  static Result<HotPlug> open();

  /// For poll(), in addition to the thread's other descriptors.
  int descriptor() const noexcept { return monitor_.descriptor(); }

  /// Returns the longest wait until the next call of look_again(), limited to `at_most`.
  std::chrono::milliseconds patience(Nanoseconds now, std::chrono::milliseconds at_most) const noexcept;

  /// Returns true once for each burst of events, when the burst is over.
  bool look_again(Nanoseconds now) noexcept;

 private:
  explicit HotPlug(systemd::DeviceMonitor monitor) noexcept;

  systemd::DeviceMonitor monitor_;
  Debounce debounce_;
};

}  // namespace gpumeter
