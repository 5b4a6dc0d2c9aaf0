#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
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

/// Starts a process that enters the group, calls access(2) with R_OK | W_OK for each path and ends; the
/// device controller (v1) or the group's BPF programs (v2) answer EPERM for what they deny. The process
/// shares this one's memory, so that none is charged to the group, and makes system calls only. It has a
/// second; then it is killed. Error: the group cannot be entered, or the process did not end. Blocks for 2 s
/// at most.
Result<std::vector<Access>> ask(const std::string& group, std::span<const std::string> paths);

// A pass over the jobs.

struct Settings {
  Roots roots;
  std::string folder = "/run/gpumeter-held";
  /// Nodes that the administrator states to be given by Slurm: names below /dev, or "nvidia" and "dri" for
  /// all of them.
  std::set<std::string> managed;
  /// A job's group is entered this long after it was first seen, because Slurm sets the filter after it makes
  /// the group.
  std::chrono::seconds settle{10};
};

/// ask(); tests answer it themselves.
using Ask =
    std::function<Result<std::vector<Access>>(const std::string& group, std::span<const std::string> paths)>;

/// What a pass did. The texts are messages for the administrator.
struct Outcome {
  std::size_t jobs = 0;     ///< with a control group
  std::size_t entered = 0;  ///< in this pass
  std::vector<std::string> failures;
};

/// Reads the jobs, enters the group of each new one once, and brings the files of the folder up to date.
/// `now`: since 1970. Error: the folder cannot be used. Blocks for 2 s a new job at most, usually for 20 ms.
Result<Outcome> pass(const Settings& settings, const Ask& ask, std::chrono::seconds now);

}  // namespace gpumeter::held
