#pragma once

#include <memory>
#include <span>
#include <string>
#include <variant>

namespace gpumeter::systemd {

/// Hears from udev which devices come and go (sd-device(3)). Where no udev runs, as in most containers, it
/// is silent. One thread at a time.
class DeviceMonitor {
 public:
  /// Listens for devices of these subsystems ("pci", "drm"); or says in words why that cannot be.
  static std::variant<DeviceMonitor, std::string> open(std::span<const char* const> subsystems);

  DeviceMonitor(DeviceMonitor&&) noexcept;
  DeviceMonitor& operator=(DeviceMonitor&&) noexcept;
  ~DeviceMonitor();

  /// For poll(): readable when there is something to take.
  int descriptor() const noexcept;

  /// Takes what has come so far without waiting; true if any of it is a device that was added, removed, bound
  /// or unbound, or changed.
  bool take() noexcept;

 private:
  struct Impl;
  explicit DeviceMonitor(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpumeter::systemd
