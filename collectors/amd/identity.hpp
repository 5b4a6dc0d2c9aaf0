#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/amd/kfd/topology.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/sources/drm.hpp"
#include "collectors/sources/pci.hpp"

/// What an AMD card is called, from files that wake nothing.
namespace gpumeter::amd {

/// The name in libdrm's amdgpu.ids for a device and revision: "AMD Radeon RX 6900 XT". A revision that is not
/// known gets a name only where all revisions of the device share it. Empty: no such file or no such card.
std::string marketing_name(const std::string& ids_file, std::uint16_t device,
                           std::optional<std::uint8_t> revision);

/// "GPU-" and the `unique_id`, as ROCm prints it; the PCI address where the chip has none.
std::string uuid_of(const pci::Function& function);

/// True while the driver refuses to return it: the read fails with EPERM during a GPU reset (kernel 6.12,
/// amdgpu_pm.c), and such a card must not go by another name until it is over.
bool hides_uuid(const pci::Function& function);

/// Where cards find out about themselves.
struct IdentitySources {
  std::string sysfs_root;
  std::string ids_file;
  drm::NodeMap nodes;
  std::vector<KfdNode> kfd;
};

/// "76.96.0" of 0x004c6000, as the driver's log has the version of the power management firmware: the one
/// that most of what is read comes from. Empty for what is no such number, and for 0, which is none.
std::string smc_version(std::string_view text);

DeviceInfo identify(const pci::Function& function, const IdentitySources& sources);

/// Cards that show the same unique_id: the first in PCI order keeps it, the others get their PCI address. One
/// note for each of those.
void separate_twins(std::vector<DeviceInfo>& devices, std::vector<std::string>& notes);

}  // namespace gpumeter::amd
