#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "systemd/device_monitor.hpp"

namespace gpumeter {

/// Merges a burst of events into one answer. The answer is due when no event has come for `quiet`, and at the
/// latest `at_most` after the first event. Pure arithmetic; one thread.
class Debounce {
 public:
  Debounce(Nanoseconds quiet, Nanoseconds at_most) noexcept : quiet_(quiet), at_most_(at_most) {}

  void event(Nanoseconds now) noexcept {
    if (!due_) latest_ = now + at_most_;
    due_ = std::min(now + quiet_, latest_);
  }

  /// Returns the time of the answer; nullopt if no event is waiting.
  std::optional<Nanoseconds> due() const noexcept { return due_; }

  /// Returns true once, when the answer is due.
  bool take(Nanoseconds now) noexcept {
    if (!due_ || now < *due_) return false;
    due_.reset();
    return true;
  }

 private:
  Nanoseconds quiet_;
  Nanoseconds at_most_;
  Nanoseconds latest_{0};
  std::optional<Nanoseconds> due_;
};

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
