#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/options.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/sampling.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

/// The number of devices that the machine should have, by vendor as in the label `vendor`. A number for the
/// whole machine is under kAnyVendor, alone. Empty: nothing is expected.
struct ExpectedDevices {
  static constexpr std::string_view kAnyVendor = "any";
  std::map<std::string, unsigned> by_vendor;
  bool operator==(const ExpectedDevices&) const = default;
};

/// `devices` in the configuration.
struct DeviceOptions {
  ExpectedDevices expected;
  std::optional<Duration> forget;  ///< how long a missing device keeps its `gpu_up 0`; nullopt: until
                                   ///< `gpumeter forget`
  std::map<std::string, std::string> names;  ///< uuid or PCI address ("0000:0c:00.0") -> name
  bool operator==(const DeviceOptions&) const = default;
};
extern const options::Section kDeviceSection;

/// `device_labels` in the configuration; its settings are DeviceLabels.
extern const options::Section kDeviceLabelsSection;

/// What the fleet does with its devices. A reload may change it, except labels, which need a restart.
struct FleetSettings {
  SamplingIntervals intervals;
  DeviceLabels labels;
  DeviceOptions devices;
};

/// Returns the operator's name for a device, or an empty text.
inline std::string name_of(const std::map<std::string, std::string>& names, const DeviceInfo& info) {
  for (const std::string& key : {info.uuid, info.pci_address}) {
    if (const auto name = names.find(key); name != names.end()) return name->second;
  }
  return {};
}

}  // namespace gpumeter
