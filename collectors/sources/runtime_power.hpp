#pragma once

#include <optional>
#include <string>

#include "collectors/sources/sleep_policy.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// The `power` folder of a device, kept open. Reading it does not wake the device. Lane thread.
class RuntimePower {
 public:
  RuntimePower() = default;
  /// `device` is its folder in sysfs. On a kernel without runtime power management the files do not exist;
  /// devices then never sleep.
  explicit RuntimePower(const std::string& device);

  /// nullopt: the device was removed.
  std::optional<PowerState> read() noexcept;

 private:
  bool may_suspend() const noexcept;

  sysfs::File status_;
  sysfs::File control_;
  sysfs::File delay_;
};

}  // namespace gpumeter
