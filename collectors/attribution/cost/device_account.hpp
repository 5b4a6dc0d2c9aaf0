#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/api/workload_cost.hpp"
#include "collectors/attribution/workload_facts.hpp"

namespace gpumeter::workloads {

/// One workload in the account of a device. Times: CLOCK_MONOTONIC.
struct AccountEntry {
  WorkloadId id;
  DeviceCost cost;
  double energy_joules = 0;            ///< its counter, also if the device has no energy counter at present
  std::optional<double> busy_counter;  ///< its counter of busy time, as the driver reports it
  double part = 0;                     ///< of the device's future energy
  bool is_present = false;             ///< it has a process on the device
  Nanoseconds begun{};                 ///< first seen on the device
  Nanoseconds seen{};                  ///< last seen on the device
};

/// All workloads of one device at one moment, `unattributed` included: what a restarted daemon needs to
/// continue their counters. Immutable once created: any thread.
struct DeviceAccount {
  std::string uuid;
  unsigned index = 0;
  std::optional<double> energy_total;  ///< the device's counter at that moment
  std::vector<AccountEntry> entries;
};

}  // namespace gpumeter::workloads
