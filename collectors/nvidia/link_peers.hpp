#pragma once

#include <string>
#include <vector>

#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// Returns where the GPU's NVLinks lead, sorted, each place once (DeviceInfo::linked_to): the PCI address of
/// a GPU, or `switch:` and the PCI address of an NVSwitch. NVSwitches of NVLink 5 are no PCI functions of the
/// machine, so their address is empty: all of them are one domain. Links that are down lead nowhere. Calls
/// NVML twice a link. May block.
std::vector<std::string> link_peers(NvmlCaller& gpu);

}  // namespace gpumeter::nvidia
