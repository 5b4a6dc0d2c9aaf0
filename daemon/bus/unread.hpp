#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collectors/api/device_status.hpp"
#include "daemon/bus/adapters.hpp"

namespace gpumeter {

/// The state of a collector, for the devices that it does not read.
struct CollectorTrouble {
  bool is_enabled = true;
  std::string error;  ///< why its discovery fails, with the remedy; empty: it works
};

/// Returns the GPUs on the bus that no collector reads, in PCI order, with the reason and the remedy of each.
/// `collectors` holds every collector of this build, by name. Pure; any thread.
std::vector<UnreadDevice> unread_devices(const Bus& bus, std::span<const DeviceStatus> devices,
                                         const std::map<std::string, CollectorTrouble>& collectors);

/// Returns one line: "0000:0c:00.0 amd 1002:73bf (vfio-pci): why; remedy".
std::string to_string(const UnreadDevice& unread);

}  // namespace gpumeter
