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
///       "last_success_timestamp_seconds": 1700000000.25}],
///      "unread": [{
///       "pci_address": "0000:65:00.0", "vendor": "amd", "pci_id": "1002:73bf", "driver": null, "module":
///       "amdgpu", "why": "no driver is bound to it: ...", "remedy": "modprobe amdgpu; ..."}]}
///
/// Unknown values are null; `uuid`, `collector` and `state` are always strings. `unread` lists the GPUs on
/// the PCI bus that no collector reads, `module` the kernel module that would make one readable.
std::string devices_json(std::span<const DeviceStatus> devices, std::span<const UnreadDevice> unread);

}  // namespace gpumeter
