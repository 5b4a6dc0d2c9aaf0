#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/attribution/workload_facts.hpp"
#include "exporter/store/store.hpp"

/// Allocations: which GPU was given to which workload, and whether it uses it.
namespace gpumeter::allocation {

/// A device or a part of one, as in the labels `uuid` and `partition`.
struct Place {
  std::string uuid;
  std::string partition;  ///< empty: the whole device

  auto operator<=>(const Place&) const = default;
};

/// A counter of busy time and the time of its commit.
struct BusyTime {
  double seconds = 0;
  Nanoseconds at{};  ///< CLOCK_MONOTONIC
};

/// A partition as gpu_partition_info describes it; empty: it has no such label.
struct PartitionFacts {
  Place place;
  std::string mig_uuid;
  std::string gpu_instance;
  std::string compute_instance;
  std::string profile = {};     ///< "1g.10gb+me"
  std::string profile_id = {};  ///< NVML's number of the profile
  std::string placement = {};   ///< first memory slice
};

/// Who was busy where, copied from one walk over the store.
struct Readings {
  using OnDevice = std::pair<std::string, workloads::WorkloadId>;  ///< the device's uuid, and a workload

  std::map<Place, BusyTime> busy;             ///< of devices and of partitions
  std::map<OnDevice, BusyTime> of_workloads;  ///< if the driver reports it
  std::set<OnDevice> present;                 ///< has or had a process there
  std::map<std::string, Nanoseconds> listed;  ///< devices whose driver lists processes, by uuid
  std::vector<PartitionFacts> partitions;

  /// The workload's own busy time on the device; 0 if the driver lists processes and it has none there.
  /// nullopt: unknown.
  std::optional<BusyTime> own(const OnDevice& key) const;
};

/// Any thread. The store's mutex is held to copy the series of five families.
Readings read(const Store& store);

}  // namespace gpumeter::allocation
