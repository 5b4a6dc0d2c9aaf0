#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collectors/api/part.hpp"

namespace gpumeter::host {

/// The host's facts about its GPUs: the paths between them (gpu_topology_info), the pressure of the host's
/// memory and I/O, and the CPU time of the workloads that hold a GPU. Reads files of sysfs and procfs that no
/// GPU's driver serves.
extern const PartEntry kPart;

/// The number of paths grows with the square of the GPUs. With more GPUs than this there is no topology.
inline constexpr std::size_t kMostInTopology = 32;

// Files of the kernel about the host: pressure stall information (Documentation/accounting/psi.rst) and the
// CPU time of a control group.

/// Time in which tasks waited for a resource, in seconds since the machine's start.
struct Pressure {
  std::optional<double> some;  ///< at least one task waited
  std::optional<double> full;  ///< all tasks that were not idle waited at once

  bool operator==(const Pressure&) const = default;
};

/// Parses the text of /proc/pressure/{memory,io}: "some avg10=0.00 ... total=MICROSECONDS" and the same for
/// `full`. Any bytes, any thread.
Pressure parse_pressure(std::string_view text) noexcept;

/// `resource`: "memory" or "io". Both values are absent if the kernel has no PSI (CONFIG_PSI, psi=0).
Pressure read_pressure(const std::string& procfs_root, const std::string& resource);

/// Parses `usage_usec` of cpu.stat (Documentation/admin-guide/cgroup-v2.rst). Any bytes, any thread.
std::optional<double> parse_cpu_stat(std::string_view text) noexcept;

/// CPU seconds of the group since it was created, from cpu.stat of cgroup v2 or cpuacct.usage of v1. `group`:
/// its path, as in /proc/PID/cgroup. nullopt if the group is gone, the kernel does not count it, or the path
/// is outside the reader's cgroup namespace. Reads files; allocates.
std::optional<double> cpu_seconds(const std::string& sysfs_root, const std::string& group);

}  // namespace gpumeter::host
