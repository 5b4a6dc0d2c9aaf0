#pragma once

#include <functional>
#include <map>
#include <string>

namespace gpumeter::slurm {

/// The jobs that have a control group on this machine.
struct JobGroups {
  /// False: slurmd has no folder of control groups, so nothing can be said about any job
  /// (proctrack/linuxproc).
  bool has_slurm = false;
  /// By job number or SLUID: the job's folder in the unified hierarchy, or in the first of v1 that has it:
  /// devices, freezer, memory, cpuset.
  std::map<std::string, std::string, std::less<>> folders;
};

/// Reads the names of Slurm's folders below `sysfs`/fs/cgroup: of the unified hierarchy at most four levels
/// deep in slices, and of the hierarchies of cgroup v1 that Slurm uses. Blocks as sysfs does; a few hundred
/// microseconds.
JobGroups read_job_groups(const std::string& sysfs);

}  // namespace gpumeter::slurm
