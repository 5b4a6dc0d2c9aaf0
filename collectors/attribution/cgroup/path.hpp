#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/enum_names.hpp"
#include "collectors/attribution/cgroup/slurm.hpp"

/// The owner of a process, derived from the control group in which the kernel keeps it.
namespace gpumeter::cgroup {

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

}  // namespace gpumeter::cgroup
