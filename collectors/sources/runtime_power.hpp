#pragma once

#include <optional>
#include <string>

#include "collectors/sources/sleep_policy.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// The `power` folder of a device, kept open. Reading it wakes nothing. Lane thread.
class RuntimePower {
 public:
  RuntimePower() = default;
  /// `device` is its folder in sysfs. A kernel without runtime power management has no such files, and its
  /// devices never sleep.
  explicit RuntimePower(const std::string& device);

  /// nullopt: the device is not there any more.
  std::optional<PowerState> read() noexcept;

 private:
  bool may_suspend() const noexcept;

  sysfs::File status_;
  sysfs::File control_;
  sysfs::File delay_;
};

}  // namespace gpumeter
