#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::held {

// The GPUs of the machine and their device nodes.

/// Where the kernel's file systems are.
struct Roots {
  std::string dev = "/dev";
  std::string procfs = "/proc";
  std::string sysfs = "/sys";
};

struct Gpu {
  std::string pci_address;  ///< dddd:bb:dd.f, lower case
  std::string node;         ///< below /dev, by which schedulers give the GPU: nvidia0, dri/renderD128

  bool operator==(const Gpu&) const = default;
};

/// All GPUs with one node each, sorted by address. NVIDIA: the number of the node is in the driver's
/// /proc/driver/nvidia/gpus/ADDRESS/information; a GPU with MIG instances is left out, because its node is
/// open to the holders of all instances. Other drivers: the render node. Blocks as /proc and sysfs do.
std::vector<Gpu> read_gpus(const Roots& roots);

// Finds out which devices the filter of a control group permits, without opening one.

enum class Access : std::uint8_t { allowed, denied, unknown };

/// The group of a job that a process of ours may enter for a moment. v1: the job's folder in the hierarchy
/// `devices`, which no accounting uses. v2: the leaf `slurm` of a step, in which Slurm keeps slurmstepd and
/// never counts or kills processes of the job; step_extern first, because it lives as long as the job. The
/// job's filter applies there, and a step's own, narrower one does not. nullopt: the job has no such group.
std::optional<std::string> door_of(const std::string& job_folder);

/// True if all processes of the group are frozen: one that enters would stop there.
bool is_frozen(const std::string& group);

/// Starts a process that enters the group, calls access(2) with R_OK | W_OK for each path and ends; the
/// device controller (v1) or the group's BPF programs (v2) answer EPERM for what they deny. The process
/// shares this one's memory, so that none is charged to the group, and makes system calls only. It has a
/// second; then it is killed. Error: the group cannot be entered, or the process did not end. Blocks for 2 s
/// at most.
Result<std::vector<Access>> ask(const std::string& group, std::span<const std::string> paths);

/// What this process itself may open: the same question without entering a group.
std::vector<Access> ask_here(std::span<const std::string> paths);

}  // namespace gpumeter::held
