#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "collectors/attribution/cgroup/slurm.hpp"

/// The workload of a process: converts /proc/PID/cgroup, the control group in which the kernel keeps the
/// process, to the labels of gpu_workload_info. Any bytes, any thread.
namespace gpumeter::cgroup {

/// A container's id has 64 bytes, below a user's slice about 80. A name chosen by a person may have 255 bytes
/// (NAME_MAX), a path 4095. Every series of the workload repeats it.
inline constexpr std::size_t kLongestLabel = 128;

/// UTF-8 without control characters, shortened() to kLongestLabel.
std::string label_text(std::string_view text);

/// The label `kind`.
enum class Kind : std::uint8_t {
  systemd_unit,
  user_unit,  ///< a unit of a user's manager
  session,    ///< a login
  container,  ///< including LXC
  pod,        ///< Kubernetes
  slurm_job,
  vm,            ///< libvirt or Proxmox
  other,         ///< a bare slice, a runtime's monitor, a manually created folder
  unattributed,  ///< no group, or the root of the tree
};
inline constexpr std::size_t kKindCount = 9;

inline constexpr EnumNames<Kind, kKindCount> kKindNames = {{{Kind::systemd_unit, "systemd_unit"},
                                                            {Kind::user_unit, "user_unit"},
                                                            {Kind::session, "session"},
                                                            {Kind::container, "container"},
                                                            {Kind::pod, "pod"},
                                                            {Kind::slurm_job, "slurm_job"},
                                                            {Kind::vm, "vm"},
                                                            {Kind::other, "other"},
                                                            {Kind::unattributed, "unattributed"}}};
constexpr std::string_view to_string(Kind kind) noexcept { return kKindNames.of(kind); }

/// The parts of one path. The views point into the path, with systemd's escapes (`\x2d`), or are constants. A
/// part that the path lacks is empty.
struct Path {
  std::string_view text;  ///< the path, without the line's end and the kernel's " (deleted)"
  Kind kind = Kind::unattributed;
  std::string_view slice;  ///< the innermost slice around the unit, container or VM
  std::string_view unit;   ///< the outermost unit below slices; in a user's slice, the unit below the manager
  std::string_view
      owner;  ///< the slice of the user who owns this part of the tree and may create any name in it
  std::string_view container;  ///< 64 hexadecimal digits (ECS, Garden: their own forms); for LXC the name
  std::string_view runtime;    ///< docker containerd cri-o podman nerdctl ecs garden lxc
  std::string_view pod;        ///< uid, with - or _; for a static pod a hash that the API server does not
                               ///< have
  std::string_view qos;        ///< of a pod: burstable besteffort guaranteed
  std::string_view driver;     ///< creator of the pod's groups: systemd, or the kubelet itself (cgroupfs)
  std::string_view machine;    ///< a VM's name
  std::string_view monitor;    ///< conmon or lxc.monitor, which watch a container from outside
  std::string_view batch;      ///< the job of PBS, HTCondor (its slot) or LSF that the unit or group is
  SlurmFolder slurm;
  std::optional<std::uint32_t> uid;  ///< of `owner`, or of the Slurm job
  bool deleted = false;              ///< the group is removed; the process is a zombie or is about to be one
  bool namespaced = false;           ///< outside the reader's cgroup namespace, which hides the upper part
};

/// Parses one path, the text after the second colon of a line in /proc/PID/cgroup. Accepts any bytes; one
/// pass, without allocation. Any thread.
///
/// Users own the tree below /user.slice and may create any name in it. Names of Slurm jobs and pods are
/// therefore ignored there, and a container belongs to its `owner`. The account of a service with Delegate=
/// may also create any name below it. Such an account is trusted, because containerd's pods are there too.
Path read_path(std::string_view path) noexcept;

/// How specific a path is, from 0 to 4: none (`/` and /init.scope), any other, container or VM, pod, Slurm
/// job.
int rank(const Path& path) noexcept;

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
  std::string container_id;
  std::string container_runtime;
  std::string pod_uid;  ///< with dashes
  std::string slurm_job;
  std::string slurm_sluid;
  std::optional<std::uint32_t> uid;  ///< of the user who owns this part of the tree, or of the Slurm job
  bool transient =
      false;  ///< run-*.scope, session-N.scope, *-spawn-UUID.scope: a workload has many such units
};

/// Returns the most specific line, that is the highest rank(). Ties are resolved in the order 0::, pids,
/// memory, cpuacct or cpu, name=systemd, any other, then by the first line. Invalid lines are skipped. The
/// views point into `text`. (The kernel's cgroup_mkdir() rejects newlines in names, so no name can forge a
/// line.)
Path most_telling_path(std::string_view text) noexcept;

/// The labels of a path.
Attribution attribution_of(const Path& path);

}  // namespace gpumeter::cgroup
