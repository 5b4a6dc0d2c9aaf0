#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter::workloads {

/// A process as the kernel identifies it. The start time (field 22 of /proc/PID/stat) distinguishes it from a
/// later process with the same number; 0 if it could not be read.
struct ProcessId {
  int pid = 0;
  std::uint64_t start_ticks = 0;

  auto operator<=>(const ProcessId&) const = default;
};

/// A process's use of one device since it was first seen there.
struct ProcessUse {
  ProcessId id;
  std::optional<std::uint32_t> uid;    ///< its real user
  std::string group;                   ///< the path of its cgroup: the most specific line of /proc/PID/cgroup
  bool present = false;                ///< on the device at the last look; otherwise its values are final
  double energy_joules = 0;            ///< its part of the device's energy; grows
  std::optional<double> busy_seconds;  ///< grows; nullopt: the driver does not report it
};

/// The use of a device at one moment. Immutable once created: any thread.
struct DeviceUse {
  std::string uuid;
  unsigned index = 0;
  Nanoseconds at{};                    ///< CLOCK_MONOTONIC
  Nanoseconds listed_at{};             ///< time of the last reading of the processes and their busy time
  bool has_energy = false;             ///< whether the device has an energy counter
  std::optional<double> busy_seconds;  ///< the device's own counter
  std::vector<std::pair<std::string, double>> throttled;  ///< seconds by cause: the device's own counters
  std::optional<double> clock_lost_seconds;  ///< ClockLoss; nullopt: no such counters, or no clocks
  std::vector<ProcessUse> processes;         ///< present, or gone for less than a minute
};

}  // namespace gpumeter::workloads
