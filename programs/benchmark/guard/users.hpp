#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "programs/benchmark/target/daemon.hpp"

namespace gpumeter::benchmark {

/// Looks for a user of the GPU other than the process `own`; returns a sentence that names it, or nullopt. A
/// list that cannot be read is a reason to give way too. Takes a few milliseconds.
using Watch = std::function<std::optional<std::string>(int own)>;

/// The driver's list of NVIDIA's GPUs: compute, graphics, MPS. Complete for every user, and up to date at
/// each call. Empty if the library is missing or does not know the GPU.
Watch nvml_watch(const std::string& library, const std::string& uuid);

/// The compute driver's list of AMD's GPUs in sysfs, as above: processes that hold memory of the GPU. Empty
/// if it does not know the GPU.
Watch kfd_watch(const std::string& sysfs_root, std::string_view pci_address);

/// The daemon's attribution, which has what the daemon may see at its own interval: seconds. A workload
/// that this process is part of does not count; `own_cgroup` is the text of /proc/self/cgroup.
Watch daemon_watch(const Daemon& daemon, const std::string& uuid, std::string own_cgroup);

/// Whether `cgroup` lies in the workload: its path has the workload's name.
bool is_part_of(std::string_view cgroup, const Holder& holder) noexcept;

}  // namespace gpumeter::benchmark
