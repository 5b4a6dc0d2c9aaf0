#pragma once

#include <memory>
#include <span>

#include "base/result.hpp"

namespace gpumeter::systemd {

/// Receives udev's events about added and removed devices (sd-device(3)). Without udev, as in most
/// containers, there are no events. One thread at a time.
class DeviceMonitor {
 public:
  /// Subscribes to devices of these subsystems ("pci", "drm").
  static Result<DeviceMonitor> open(std::span<const char* const> subsystems);

  DeviceMonitor(DeviceMonitor&&) noexcept;
  DeviceMonitor& operator=(DeviceMonitor&&) noexcept;
  ~DeviceMonitor();

  /// For poll(): readable while events wait.
  int descriptor() const noexcept;

  /// Reads the waiting events. Returns true if a device was added, removed, bound, unbound or changed.
  bool take() noexcept;

 private:
  struct Impl;
  explicit DeviceMonitor(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpumeter::systemd
