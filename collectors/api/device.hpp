#pragma once

#include <optional>
#include <string>

namespace gpumeter {

/// What a device is: found by discovery, fixed from then on. Empty and nullopt mean not known, and such a
/// fact has no label. `uuid` is the key of a device everywhere: the hardware's own where it has one, else
/// the PCI address; it survives reboots, card numbers do not.
struct DeviceInfo {
  std::string uuid;
  std::string vendor;       ///< "nvidia", "amd", "intel", "simulated"
  std::string model;        ///< marketing name, such as "Radeon RX 6900 XT"
  std::string pci_address;  ///< lower case, four-digit domain: "0000:0c:00.0"; empty off the bus
  std::string serial;
  std::string driver;          ///< kernel module: "amdgpu"
  std::string driver_version;  ///< out-of-tree drivers have one; those of the kernel do not
  std::string vbios_version;
  std::string firmware_version;
  std::string architecture;
  std::string vendor_index;  ///< what the vendor's tool counts it as
  std::string minor;         ///< of its device node: /dev/nvidia0 -> "0", /dev/dri/renderD128 -> "128"
  std::optional<int> compute_units;
  std::optional<int> numa_node;         ///< of the host: where its PCI function is attached
  std::optional<int> memory_numa_node;  ///< that its own memory is, where the host can use that as such
  /// How it is divided now, in the driver's words: "cpx/nps4". Empty: it cannot be. A device that is divided
  /// anew is opened anew.
  std::string partitioning;
  /// Where the collector reads it from, in its own terms (a sysfs folder, a handle); opaque to others.
  std::string source;

  bool operator==(const DeviceInfo&) const = default;
};

}  // namespace gpumeter
