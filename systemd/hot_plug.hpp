#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace gpumeter::systemd {

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

/// The subsystems of GPUs and NPUs: the card on its bus, and the nodes and sensors of its driver.
inline constexpr const char* kGpuSubsystems[] = {"pci", "drm", "hwmon", "accel"};

/// Reports when devices should be discovered again, by udev's events (sd-device(3)) about devices that were
/// added, removed, bound, unbound or changed. One thread at a time.
class HotPlug {
 public:
  /// Returns an Error if udev is not available, as in most containers. Only the regular discovery then finds
  /// added and removed devices.
  static Result<HotPlug> open(std::span<const char* const> subsystems = kGpuSubsystems);

  HotPlug(HotPlug&&) noexcept;
  HotPlug& operator=(HotPlug&&) noexcept;
  ~HotPlug();

  /// For poll(), in addition to the thread's other descriptors: readable while events wait.
  int descriptor() const noexcept;

  /// Returns the longest wait until the next call of look_again(), limited to `at_most`.
  std::chrono::milliseconds patience(Nanoseconds now, std::chrono::milliseconds at_most) const noexcept;

  /// Reads the waiting events. Returns true once for each burst of events, when the burst is over.
  bool look_again(Nanoseconds now) noexcept;

 private:
  struct Monitor;
  explicit HotPlug(std::unique_ptr<Monitor> monitor) noexcept;

  std::unique_ptr<Monitor> monitor_;
  Debounce debounce_;
};

}  // namespace gpumeter::systemd
