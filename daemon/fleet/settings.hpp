#pragma once

#include <map>
#include <optional>
#include <string>

#include "collectors/api/device.hpp"
#include "daemon/lane/tier_schedule.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

/// The settings of devices in the configuration. A reload may change them, except labels, which need a
/// restart.
struct FleetSettings {
  SamplingIntervals intervals;
  DeviceLabels labels;
  std::map<std::string, std::string> names;  ///< uuid or PCI address -> name
  std::optional<Nanoseconds> forget;  ///< how long a missing device stays known; nullopt: until forget()
};

/// Returns the operator's name for a device, or an empty text.
inline std::string name_of(const std::map<std::string, std::string>& names, const DeviceInfo& info) {
  for (const std::string& key : {info.uuid, info.pci_address}) {
    if (const auto name = names.find(key); name != names.end()) return name->second;
  }
  return {};
}

}  // namespace gpumeter
