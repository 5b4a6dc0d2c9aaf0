#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

/// The use of one device by one workload, since the workload was first seen there. nullopt: the driver does
/// not report what the figure needs.
struct DeviceCost {
  std::string uuid;
  unsigned index = 0;
  std::optional<double> joules;        ///< its part of the device's energy
  double held_seconds = 0;             ///< time in which it had a process on the device
  std::optional<double> busy_seconds;  ///< time of its work, summed over its processes
  std::optional<double> idle_seconds;  ///< the part of held_seconds in which none of its work ran
  std::optional<double> peak_memory;   ///< most device memory in bytes, at any list of the processes
  std::map<std::string, double> throttled_seconds;  ///< of the device while it was held, by cause

  bool operator==(const DeviceCost&) const = default;
};

/// What a workload used of all devices, while it runs and for a day after its end.
struct WorkloadCost {
  std::string kind, workload;       ///< as in gpu_workload_info
  std::vector<Label> labels;        ///< the others of gpu_workload_info when it was last seen
  Nanoseconds begun{};              ///< CLOCK_REALTIME when it was first seen on a device
  Nanoseconds seen{};               ///< CLOCK_REALTIME when it was last seen on a device
  bool has_ended = false;           ///< no process of it is on a device
  std::vector<DeviceCost> devices;  ///< by index

  bool operator==(const WorkloadCost&) const = default;
};

}  // namespace gpumeter
