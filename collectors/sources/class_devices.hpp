#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sources/pci.hpp"

namespace gpumeter {

/// A device of the kernel that a class of sysfs (drm, accel) or the platform bus lists.
struct ClassDevice {
  std::string folder;                     ///< of the device on its bus, with all links resolved
  std::string name;                       ///< its name on the bus: "0000:03:00.0", "fec00000.v3d"
  std::string driver;                     ///< empty: none is bound
  std::string node;                       ///< of the class: "card0", "accel0"; empty for the platform bus
  std::optional<pci::Function> function;  ///< nullopt: not on the PCI bus

  bool renders = false;  ///< it has a render node, or is an accelerator
};

/// The devices behind class/<name> of sysfs, one per device; connectors ("card0-DP-1") are left out. Reads
/// links and `uevent` only, which no driver serves.
std::vector<ClassDevice> devices_of_class(const std::string& sysfs_root, std::string_view name);

/// The platform devices that are bound to a driver.
std::vector<ClassDevice> platform_devices(const std::string& sysfs_root, std::string_view driver);

/// KEY's value in the device's `uevent`, which for a platform device has the device tree's OF_COMPATIBLE_0.
std::string uevent_value(const ClassDevice& device, std::string_view key);

}  // namespace gpumeter
