#pragma once

#include <span>
#include <string>

#include "collectors/api/device_status.hpp"

namespace gpumeter {

/// The body of /api/v1/devices, a stable interface:
///
///     {"devices": [{
///       "index": 0, "uuid": "GPU-...", "vendor": "nvidia", "model": "NVIDIA H100", "pci_address":
///       "0000:17:00.0", "collector": "nvidia", "driver": "nvidia", "up": true, "state": "ok",
///       "last_success_timestamp_seconds": 1700000000.25}]}
///
/// Unknown values are null; `uuid`, `collector` and `state` are always strings.
std::string devices_json(std::span<const DeviceStatus> devices);

}  // namespace gpumeter
