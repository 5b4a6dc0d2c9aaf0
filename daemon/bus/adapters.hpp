#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectors/sources/pci.hpp"

namespace gpumeter {

/// What the bus shows: display adapters with a GPU's driver, whether a collector reads them or not. Those
/// that are lent to a virtual machine, and consoles without a GPU, are left out.
struct Bus {
  std::vector<std::string> addresses;         ///< in PCI order
  std::map<std::string, unsigned> by_vendor;  ///< for gpumeter_pci_devices: also GPUs that lack a driver

  /// The next function in PCI order.
  void add(const pci::Function& adapter);
};

}  // namespace gpumeter
