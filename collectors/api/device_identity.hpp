#pragma once

#include <string>

#include "collectors/api/device.hpp"

namespace gpumeter {

/// The identity of a device on the page.
struct DeviceIdentity {
  std::string collector;
  unsigned index = 0;
  DeviceInfo info;
  std::string name;  ///< from config `devices.names`, may be empty
};

}  // namespace gpumeter
