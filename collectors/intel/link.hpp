#pragma once

#include <optional>
#include <string>

#include "collectors/sources/pci.hpp"

namespace gpumeter::intel {

/// The folder whose current_link_* and max_link_* files describe the card's slot. A discrete card has a
/// switch of its own, and the function behind it always reports 2.5 GT/s and one lane; the link of the slot
/// is that of a bridge one or two levels above. nullopt if no such bridge is visible, and for graphics in the
/// processor, which has no link (speed "Unknown", width 0).
std::optional<std::string> slot_port(const pci::Function& function);

}  // namespace gpumeter::intel
