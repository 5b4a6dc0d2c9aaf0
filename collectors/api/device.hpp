#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpumeter {

/// A device, immutable after discovery. Empty and nullopt mean unknown; an unknown fact has no label. `uuid`
/// is the key of a device everywhere: the hardware's own, or the PCI address if it has none. Unlike card
/// numbers, the key survives reboots.
struct DeviceInfo {
  std::string uuid;
  std::string vendor;       ///< "nvidia", "amd", "intel", "simulated"
  std::string model;        ///< marketing name, such as "Radeon RX 6900 XT"
  std::string pci_address;  ///< lower case, four-digit domain: "0000:0c:00.0"; empty if the device is not on
                            ///< the bus
  std::string serial;
  std::string driver;          ///< kernel module: "amdgpu"
  std::string driver_version;  ///< of drivers outside the kernel's tree
  std::string vbios_version;
  std::string firmware_version;
  std::string architecture;
  std::string compute_capability;  ///< of CUDA: "9.0"
  std::string vendor_index;        ///< its number in the vendor's tool
  std::string minor;               ///< of its device node: /dev/nvidia0 -> "0", /dev/dri/renderD128 -> "128"
  std::optional<int> compute_units;
  std::optional<int> numa_node;         ///< of the host, to which its PCI function is attached
  std::optional<int> memory_numa_node;  ///< of its own memory, if the host can use that as a node
  std::string local_cpus;               ///< near its PCI function, as a list of ranges: "0-31,64-95"
  /// Where its links lead (NVLink, xGMI): PCI addresses of GPUs, and switches (pci::kSwitchPrefix).
  std::vector<std::string> linked_to;
  /// How the device is divided, in the driver's words: "cpx/nps4". Empty: it cannot be divided. If the
  /// division changes, the daemon opens the device again.
  std::string partitioning;
  /// The source from which the collector reads it (a sysfs folder, a handle); opaque to others.
  std::string source;

  bool operator==(const DeviceInfo&) const = default;
};

}  // namespace gpumeter
