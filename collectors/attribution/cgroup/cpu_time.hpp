#pragma once

#include <optional>
#include <string>
#include <string_view>

/// CPU time that the kernel counted for a group of processes.
namespace gpumeter::cgroup {

/// Parses `usage_usec` of cpu.stat (Documentation/admin-guide/cgroup-v2.rst). Any bytes, any thread.
std::optional<double> parse_cpu_stat(std::string_view text) noexcept;

/// CPU seconds of the group since it was created, from cpu.stat of cgroup v2 or cpuacct.usage of v1. `group`:
/// its path, as in /proc/PID/cgroup. nullopt if the group is gone, the kernel does not count it, or the path
/// is outside the reader's cgroup namespace. Reads files; allocates.
std::optional<double> cpu_seconds(const std::string& sysfs_root, const std::string& group);

}  // namespace gpumeter::cgroup
