#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectors/api/device_status.hpp"

namespace gpumeter {

/// The page at `/`: assets/page.html with the devices, the GPUs that no collector reads, links and build
/// information. Its script replaces the list of devices by live values; without a script the list stays.
/// Loads nothing from other servers.
std::string status_page(std::span<const DeviceStatus> devices, std::span<const UnreadDevice> unread,
                        std::string_view telemetry_path, const BuildFacts& build);

/// The page at `/runbooks`: docs/runbooks.md as HTML, so that the reasons on the live page have an address
/// that works without a network. A heading `## GpuLost` has the anchor `gpulost`.
std::string runbooks_page(std::string_view markdown);

}  // namespace gpumeter
