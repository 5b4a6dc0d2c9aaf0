#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/device_identity.hpp"
#include "collectors/attribution/allocation/readings.hpp"
#include "collectors/attribution/names/name_book.hpp"

namespace gpumeter::allocation {

/// Finds the device, or its partition, that a source of allocations names. One thread.
class Resolver {
 public:
  /// `devices`: all known devices of the machine, by index, also those that are missing, because positions
  /// count them.
  Resolver(std::span<const DeviceIdentity> devices, std::span<const PartitionFacts> partitions);

  struct Found {
    const DeviceIdentity* device;  ///< one of `devices`
    std::string partition;         ///< label; empty: the whole device
  };
  /// nullopt: the machine has no such device, or more than one.
  std::optional<Found> find(const workloads::DeviceSelector& selector) const;

 private:
  using Selector = workloads::DeviceSelector;

  std::optional<Found> by_uuid(const std::string& uuid) const;
  std::optional<Found> by_old_mig_name(const std::string& name) const;
  std::string instance_with_id(const std::string& uuid, std::string_view id) const;
  std::string instance_at_place(const std::string& uuid, std::string_view name) const;
  std::optional<Found> by_minor(const Selector& selector) const;
  std::optional<Found> in_order(const Selector& selector) const;
  template <class Matches>
  std::optional<Found> only(const std::string& vendor, Matches matches) const;

  std::span<const DeviceIdentity> devices_;
  std::span<const PartitionFacts> partitions_;
  std::vector<const DeviceIdentity*> in_pci_order_;
};

}  // namespace gpumeter::allocation
