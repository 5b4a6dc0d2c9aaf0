#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectors/api/device_status.hpp"

namespace gpumeter {

/// The page at `/`: the devices, links and build information. Plain HTML that loads nothing from the network.
std::string status_page(std::span<const DeviceStatus> devices, std::string_view telemetry_path,
                        const BuildFacts& build);

}  // namespace gpumeter
