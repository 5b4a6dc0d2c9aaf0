#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "collectors/api/collector.hpp"
#include "collectors/api/device.hpp"
#include "collectors/intel/card.hpp"
#include "collectors/sources/drm.hpp"
#include "collectors/sources/pci.hpp"

/// The names and ids of an Intel GPU and the place of its link, from files that do not wake it.
namespace gpumeter::intel {

/// The product's name in the list of PCI ids (pci.ids), such as "Intel Arc A380" for "DG2 [Arc A380]". Empty:
/// no such file or no such device.
std::string product_name(const std::string& ids_file, std::uint16_t device);

/// The kernel gives a card no number of its own, so its uuid is its PCI address.
DeviceInfo identify(const pci::Function& function, const drm::NodeMap& nodes, std::string model);

/// The folder whose current_link_* and max_link_* files describe the card's slot. A discrete card has a
/// switch of its own, and the function behind it always reports 2.5 GT/s and one lane; the link of the slot
/// is that of a bridge one or two levels above. nullopt if no such bridge is visible, and for graphics in the
/// processor, which has no link (speed "Unknown", width 0).
std::optional<std::string> slot_port(const pci::Function& function);

inline constexpr CollectorOption kIntelOptions[] = {
    {"ids_file", CollectorOption::Kind::text, "/usr/share/misc/pci.ids",
     "List of PCI IDs, for the names of Intel GPUs."},
};

Result<std::unique_ptr<Collector>> open_intel(const CollectorContext& context);

/// Arc, Data Center GPU and graphics in processors, from the drivers i915 and xe: sysfs, events (PMU) and
/// queries; no library of Intel's. Any number of cards is read in parallel.
inline constexpr CollectorEntry kIntel = {
    .name = "intel",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = kIntelOptions,
    .metrics = intel_row_docs,
    .check = [](const CollectorContext&) -> std::optional<OptionProblem> { return std::nullopt; },
    .open = open_intel,
};

}  // namespace gpumeter::intel
