#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// Names in a control group's path, and Slurm jobs, recognised by the folders that slurmd and slurmstepd
/// create. The parsers take any bytes, on any thread, without allocation. gpumeter-held has this file and no
/// other of the folder.
namespace gpumeter::cgroup {

/// Removes and returns the first name of a path; empty after the last.
std::string_view take_name(std::string_view& path) noexcept;

/// The text between `prefix` and `suffix`; empty if the name has another form.
std::string_view between(std::string_view name, std::string_view prefix, std::string_view suffix) noexcept;

bool is_digits(std::string_view text) noexcept;

bool is_slice(std::string_view name) noexcept;

/// The uid in user-1000.slice and user@1000.service.
std::optional<std::uint32_t> user_of(std::string_view name) noexcept;

/// A job's folder: `job` or `sluid`, and the deeper parts that the path has. Views into the path.
struct SlurmFolder {
  std::string_view job;    ///< decimal
  std::string_view sluid;  ///< "s" and 13 characters: the folder's name since Slurm 26.05
  std::string_view step;   ///< a number, batch, extern, interactive, TBD
  std::string_view task;   ///< a number, special
  std::string_view node;   ///< set if several slurmd run on one machine
  std::string_view uid;    ///< cgroup v1 only
  bool daemon = false;     ///< slurmstepd itself, not the user's program

  std::string_view id() const noexcept { return job.empty() ? sluid : job; }
};

/// Parses a path from its root. v1: /slurm[_NODE]/uid_N/job_N. v2: [NODE_]slurmstepd.scope/{job_N, SLUID}
/// below slices that are not a user's. id() is empty if the folder is not a job's.
SlurmFolder slurm_folder(std::string_view path) noexcept;

/// A SLUID (Slurm, src/common/sluid.h): "s" and 13 digits of Crockford's base 32, at most 64 bits.
bool is_sluid(std::string_view text) noexcept;

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

}  // namespace gpumeter::cgroup
