#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter::workloads {

/// A process by the kernel's word: the start time (field 22 of /proc/PID/stat) tells it from another that has
/// its number later; 0 where it could not be read.
struct ProcessId {
  int pid = 0;
  std::uint64_t start_ticks = 0;

  auto operator<=>(const ProcessId&) const = default;
};

/// What a process used of one device since it was first seen there.
struct ProcessUse {
  ProcessId id;
  std::optional<std::uint32_t> uid;  ///< its real user
  std::string group;         ///< the path of its cgroup, as /proc/PID/cgroup has it in its most telling line
  bool present = false;      ///< on the device at the last look; else its figures stand for a last reading
  double energy_joules = 0;  ///< its part of the device's; grows
  std::optional<double> busy_seconds;  ///< grows; nullopt: the driver does not tell
};

/// Who used a device, as of one moment. Immutable once made: any thread.
struct DeviceUse {
  std::string uuid;
  unsigned index = 0;
  Nanoseconds at{};                    ///< CLOCK_MONOTONIC
  Nanoseconds listed_at{};             ///< when the processes, and how busy they were, were last read
  bool has_energy = false;             ///< whether the device has an energy counter at all
  std::optional<double> busy_seconds;  ///< the device's own counter
  std::vector<ProcessUse> processes;   ///< those present, and those that left within the last minute
};

}  // namespace gpumeter::workloads
