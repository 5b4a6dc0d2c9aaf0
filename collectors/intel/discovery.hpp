#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/sources/pci_scan.hpp"

namespace gpumeter::intel {

/// Finds the GPUs that i915 and xe drive. Each card is identified within a time limit, so a hanging driver
/// does not delay the other cards; a card that was identified before keeps its identity meanwhile. One
/// thread.
class IntelDiscovery {
 public:
  /// `ids_file`: the list of PCI ids. `hanging`: see CollectorContext.
  IntelDiscovery(std::string sysfs_root, std::string ids_file, const Clock& clock,
                 const std::shared_ptr<HangingCalls>& hanging);

  Discovery find();

 private:
  using Cards = std::map<std::string, pci::Function>;
  void identify_all(const Cards& cards, Discovery& found);
  void keep_silent(const std::string& address, const std::string& why, Discovery& found) const;

  const std::string sysfs_root_;
  const std::string ids_file_;
  pci::Scan bus_;
  BoundedCalls cards_;
  std::map<std::string, DeviceInfo> known_;  // by PCI address, as last read
};

}  // namespace gpumeter::intel
