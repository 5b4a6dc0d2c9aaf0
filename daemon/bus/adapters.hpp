#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectors/sources/pci.hpp"
#include "daemon/bus/host.hpp"

namespace gpumeter {

/// The display adapters on the bus that have a GPU's driver, whether a collector reads them or not. Adapters
/// lent to a virtual machine, and consoles without a GPU, are left out.
struct Bus {
  std::vector<std::string> addresses;         ///< in PCI order
  std::map<std::string, unsigned> by_vendor;  ///< for gpumeter_pci_devices; also counts GPUs without a driver
  std::vector<pci::Function> functions;       ///< all display adapters, in PCI order
  Host host;

  /// Adds the next function in PCI order.
  void add(const pci::Function& adapter);
};

}  // namespace gpumeter
