#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "collectors/api/drm_use.hpp"

namespace gpumeter::fdinfo {

/// A collector's watch of one DRM device: scans run while it is on. Lane thread.
class DeviceWatch {
 public:
  /// The interval that keeps a scan of 2000 processes with 50 descriptors each below 1 % of a core.
  static constexpr Nanoseconds kEvery = std::chrono::seconds(5);
  /// A scan older than this is no longer used: the scanner hangs, or reads fail.
  static constexpr Nanoseconds kStale = std::chrono::seconds(30);

  /// Watches nothing.
  DeviceWatch() = default;
  /// Starts the watch if `is_on`. `users` may be null: nothing is watched. `device` as in DrmUsers::watch().
  DeviceWatch(std::shared_ptr<DrmUsers> users, std::string device, bool is_on = true);

  /// True if there is a scanner.
  explicit operator bool() const noexcept { return users_ != nullptr; }

  /// Some drivers (xe) resume the device when fdinfo is read. A collector that lets its device sleep turns
  /// the watch off, and on again when the device is awake. The latter allocates; without memory the watch
  /// stays off, and the next call tries again.
  void turn_on(bool is_on) noexcept;

  /// The last scan, if it is not out of date at `now` (CLOCK_MONOTONIC); null otherwise, and before the
  /// first. `is_late` is then true if there was a scan.
  std::shared_ptr<const DrmUse> latest(Nanoseconds now, bool& is_late) const noexcept;

 private:
  std::shared_ptr<DrmUsers> users_;
  std::string device_;
  std::shared_ptr<void> handle_;  // null: off
};

}  // namespace gpumeter::fdinfo
