#pragma once

#include <string_view>

namespace gpumeter {

/// The labels of every device series in addition to `gpu` and `uuid` (config: `device_labels`).
struct DeviceLabels {
  static constexpr bool kIsList = true;  ///< in the configuration
  bool vendor = true;
  bool model = true;
  bool pci_address = false;
  bool serial = false;
  bool name = false;
  bool operator==(const DeviceLabels&) const = default;
};

struct DeviceLabelName {
  std::string_view name;
  bool DeviceLabels::*member;
};
inline constexpr DeviceLabelName kDeviceLabelNames[] = {{"vendor", &DeviceLabels::vendor},
                                                        {"model", &DeviceLabels::model},
                                                        {"pci_address", &DeviceLabels::pci_address},
                                                        {"serial", &DeviceLabels::serial},
                                                        {"name", &DeviceLabels::name}};

}  // namespace gpumeter
