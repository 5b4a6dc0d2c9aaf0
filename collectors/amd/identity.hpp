#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/amd/kfd.hpp"
#include "collectors/api/device.hpp"
#include "collectors/sources/drm.hpp"
#include "collectors/sources/pci.hpp"

/// The names and ids of an AMD card, from files that do not wake it.
namespace gpumeter::amd {

/// The name in libdrm's amdgpu.ids for a device and revision: "AMD Radeon RX 6900 XT". An unknown revision
/// gets a name only if all revisions of the device share it. Empty: no such file or no such card.
std::string marketing_name(const std::string& ids_file, std::uint16_t device,
                           std::optional<std::uint8_t> revision);

/// "GPU-" and the `unique_id`, in ROCm's form; the PCI address if the chip has none.
std::string uuid_of(const pci::Function& function);

/// True while the driver refuses to return the uuid. The read fails with EPERM during a GPU reset (kernel
/// 6.12, amdgpu_pm.c), and the card must keep its name during the reset.
bool hides_uuid(const pci::Function& function);

/// The sources of the identity of all cards.
struct IdentitySources {
  std::string sysfs_root;
  std::string ids_file;
  drm::NodeMap nodes;
  std::vector<KfdNode> kfd;
  std::vector<KfdLink> links;
};

/// "76.96.0" for 0x004c6000: the version of the power management firmware, in the form of the driver's log.
/// Most of the values come from this firmware. Empty if the text is not such a number, or is 0, which means
/// no version.
std::string smc_version(std::string_view text);

DeviceInfo identify(const pci::Function& function, const IdentitySources& sources);

/// Handles cards with the same unique_id: the first in PCI order keeps it, the others get their PCI address.
/// Adds one note for each of the others.
void separate_twins(std::vector<DeviceInfo>& devices, std::vector<std::string>& notes);

}  // namespace gpumeter::amd
