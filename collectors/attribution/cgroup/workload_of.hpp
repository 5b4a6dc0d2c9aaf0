#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/attribution/cgroup/path.hpp"

/// Who a process works for: /proc/PID/cgroup as the labels of gpu_workload_info. Any bytes, any thread.
namespace gpumeter::cgroup {

/// Why a process is nobody's.
enum class Reason : std::uint8_t {
  none,     ///< it is somebody's
  root,     ///< in the root of the tree: a kernel thread, no manager of groups, or the reader's own namespace
  no_line,  ///< its file has no line that is one
  gone,     ///< no such process
  hidden,   ///< no such process, but /proc hides those of others (mount option hidepid)
  denied,   ///< its file may not be read (hidepid=1)
  failed,   ///< any other error
};
std::string_view to_string(Reason reason) noexcept;

/// Whose a process is, in label values: UTF-8 without control characters, of kLongestLabel bytes at the most.
struct Attribution {
  Kind kind = Kind::unattributed;
  Reason reason = Reason::no_line;
  /// The workload's name, the same for all its processes and for as long as it is there. With `kind` it tells
  /// it from all others of the machine: a unit's name, a container's id, a pod's uid, a job's number or
  /// SLUID, a VM's name; what a user made begins with the user's slice. What has a new name each time it is
  /// started goes by its slice (see `transient`). Empty: unattributed.
  std::string workload;
  std::string unit;  ///< around a container too, where it has one
  std::string slice;
  std::string container_id;
  std::string_view container_runtime;
  std::string pod_uid;  ///< with dashes
  std::string slurm_job;
  std::string slurm_sluid;
  std::optional<Sluid> sluid;
  std::optional<std::uint32_t> uid;  ///< of the user in whose part of the tree it is, or of the Slurm job
  bool transient = false;  ///< run-*.scope, session-N.scope, *-spawn-UUID.scope: one unit of many a workload
  bool deleted = false;    ///< see Path
  bool namespaced = false;
};

/// The line that tells the most: the highest rank(), at a tie 0::, pids, memory, cpuacct or cpu,
/// name=systemd, any other, then the first. What is no line is skipped. The views are into `text`. (A name
/// cannot hold a newline: kernel, cgroup_mkdir(), so none can forge a line.)
Path most_telling_path(std::string_view text) noexcept;

/// The labels of a path.
Attribution attribution_of(const Path& path);

}  // namespace gpumeter::cgroup
