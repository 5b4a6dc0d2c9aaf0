#pragma once

#include <memory>
#include <span>

#include "base/result.hpp"

namespace gpumeter::systemd {

/// Receives udev's events of devices that come and go (sd-device(3)). Without udev, as in most containers,
/// there are none. One thread at a time.
class DeviceMonitor {
 public:
  /// Listens for devices of these subsystems ("pci", "drm").
  static Result<DeviceMonitor> open(std::span<const char* const> subsystems);

  DeviceMonitor(DeviceMonitor&&) noexcept;
  DeviceMonitor& operator=(DeviceMonitor&&) noexcept;
  ~DeviceMonitor();

  /// For poll(): readable while events wait.
  int descriptor() const noexcept;

  /// Takes the waiting events. True if there was one: a device was added, removed, bound, unbound or changed.
  bool take() noexcept;

 private:
  struct Impl;
  explicit DeviceMonitor(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpumeter::systemd
