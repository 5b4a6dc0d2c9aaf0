#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/amd/card.hpp"
#include "collectors/amd/kfd.hpp"
#include "collectors/api/collector.hpp"
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

inline constexpr CollectorOption kAmdOptions[] = {
    {"ids_file", CollectorOption::Kind::text, "/usr/share/libdrm/amdgpu.ids",
     "libdrm's list of marketing names, by PCI device and revision."},
    {"links", CollectorOption::Kind::text, "sum",
     "xGMI series. sum: totals of all links of a GPU; each: also a set per link."},
    {"events", CollectorOption::Kind::text, "none",
     "kfd: counts resets, VM faults and thermal throttling by the compute driver's events. The daemon then "
     "has "
     "/dev/kfd open until it ends, and the driver refuses to change partitions or to be unloaded."},
};

std::optional<OptionProblem> check_amd(const CollectorContext& context);
Result<std::unique_ptr<Collector>> open_amd(const CollectorContext& context);

/// Radeon, APU and Instinct, from the sysfs files of amdgpu (and of radeon for old cards); no library of
/// AMD's. Each card's own firmware serves its files, so any number of cards is read in parallel.
inline constexpr CollectorEntry kAmd = {
    .name = "amd",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = kAmdOptions,
    .metrics = amd_row_docs,
    .check = check_amd,
    .open = open_amd,
};

}  // namespace gpumeter::amd
