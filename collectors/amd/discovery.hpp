#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/amd/identity.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/sources/pci_scan.hpp"

namespace gpumeter::amd {

/// Finds AMD's cards. Each card is identified by itself and within a time limit, so a hanging driver does not
/// delay the other cards. A card that was identified before keeps its identity while its driver hangs; its
/// lane determines whether it can be read. One thread.
class AmdDiscovery {
 public:
  /// `hanging`: see CollectorContext.
  AmdDiscovery(std::string sysfs_root, std::string ids_file, const Clock& clock,
               const std::shared_ptr<HangingCalls>& hanging);

  Discovery find();

 private:
  using Sources = std::shared_ptr<const IdentitySources>;
  Sources present_sources();
  void identify_all(const std::vector<pci::Function>& cards, Discovery& found);
  void forget_missing(const pci::Scan::Found& bus);
  bool has_lost_uuid(const DeviceInfo& info) const;
  void keep_silent(const std::string& address, const std::string& why, Discovery& found) const;
  DeviceInfo completed(DeviceInfo info);

  const std::string sysfs_root_;
  const std::string ids_file_;
  pci::Scan bus_;
  BoundedCalls topology_;
  BoundedCalls cards_;
  Sources sources_;
  std::map<std::string, DeviceInfo> known_;  // by PCI address, as last read
};

}  // namespace gpumeter::amd
