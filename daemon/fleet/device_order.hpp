#pragma once

#include <string>
#include <vector>

#include "daemon/fleet/device_directory.hpp"

namespace gpumeter {

/// A device as a collector's discovery reported it.
struct Find {
  std::string collector;
  DeviceInfo info;
};

/// Puts finds into the order in which indexes are given: PCI order over all vendors, then what is on no
/// bus, as it came.
void sort_by_bus(std::vector<Find>& finds);

/// The index a device would like to have: its place among the machine's display adapters (`bus`, in PCI
/// order), or the `ordinal`-th after them. So a card whose driver is loaded later finds its number free.
unsigned preferred_index(const std::vector<std::string>& bus, const DeviceInfo& info, unsigned ordinal);

}  // namespace gpumeter
