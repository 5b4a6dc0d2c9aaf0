#pragma once

#include <string>

#include "collectors/api/device.hpp"

namespace gpumeter {

/// Who a device is on the page.
struct DeviceIdentity {
  std::string collector;
  unsigned index = 0;
  DeviceInfo info;
  std::string name;  ///< from config `devices.names`, may be empty
};

}  // namespace gpumeter
