#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/attribution/cgroup/path.hpp"

/// The workload of a process: converts /proc/PID/cgroup to the labels of gpu_workload_info. Any bytes, any
/// thread.
namespace gpumeter::cgroup {

/// The reason why a process is not attributed.
enum class Reason : std::uint8_t {
  none,     ///< the process is attributed
  root,     ///< in the root of the tree: a kernel thread, no manager of groups, or the reader's own namespace
  no_line,  ///< its file has no valid line
  gone,     ///< no such process
  hidden,   ///< no such process, but /proc hides the processes of others (mount option hidepid)
  denied,   ///< its file is unreadable (hidepid=1)
  failed,   ///< any other error
};
inline constexpr EnumNames<Reason, 7> kReasonNames = {{{Reason::none, "none"},
                                                       {Reason::root, "root"},
                                                       {Reason::no_line, "no_line"},
                                                       {Reason::gone, "gone"},
                                                       {Reason::hidden, "hidden"},
                                                       {Reason::denied, "denied"},
                                                       {Reason::failed, "failed"}}};
constexpr std::string_view to_string(Reason reason) noexcept { return kReasonNames.of(reason); }

/// The owner of a process, as label values: UTF-8 without control characters, kLongestLabel bytes at most.
struct Attribution {
  Kind kind = Kind::unattributed;
  Reason reason = Reason::no_line;
  /// The workload's name, the same for all its processes during its lifetime. Together with `kind` it is
  /// unique on the machine: a unit's name, a container's id, a pod's uid, a job's number or SLUID, a VM's
  /// name. Below a user's slice the name begins with the slice. Units with a new name at each start are
  /// grouped by their slice (see `transient`). Empty: unattributed.
  std::string workload;
  /// The path of the workload's own group, at or above that of the process; raw bytes. Empty: unattributed,
  /// or outside the reader's cgroup namespace.
  std::string group;
  std::string unit;  ///< also the unit around a container
  std::string slice;
  std::string container_id;
  std::string_view container_runtime;
  std::string pod_uid;  ///< with dashes
  std::string slurm_job;
  std::string slurm_sluid;
  std::optional<Sluid> sluid;
  std::optional<std::uint32_t> uid;  ///< of the user who owns this part of the tree, or of the Slurm job
  bool transient =
      false;             ///< run-*.scope, session-N.scope, *-spawn-UUID.scope: a workload has many such units
  bool deleted = false;  ///< see Path
  bool namespaced = false;
};

/// Returns the most specific line, that is the highest rank(). Ties are resolved in the order 0::, pids,
/// memory, cpuacct or cpu, name=systemd, any other, then by the first line. Invalid lines are skipped. The
/// views point into `text`. (The kernel's cgroup_mkdir() rejects newlines in names, so no name can forge a
/// line.)
Path most_telling_path(std::string_view text) noexcept;

/// The labels of a path.
Attribution attribution_of(const Path& path);

}  // namespace gpumeter::cgroup
