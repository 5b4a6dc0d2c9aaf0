#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/enum_names.hpp"
#include "collectors/attribution/cgroup/slurm.hpp"

/// Who a process works for, by the kernel's word: the control group it is in.
namespace gpumeter::cgroup {

/// The label `kind`.
enum class Kind : std::uint8_t {
  systemd_unit,
  user_unit,  ///< a unit of somebody's user manager
  session,    ///< a login
  container,  ///< LXC too
  pod,        ///< of Kubernetes
  slurm_job,
  vm,            ///< of libvirt or Proxmox
  other,         ///< a bare slice, a runtime's monitor, a folder by hand
  unattributed,  ///< no group, or the root of all
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

/// What one path says. The views are pieces of it, with systemd's escapes (`\x2d`) still in, or constants;
/// empty where it says nothing.
struct Path {
  std::string_view text;  ///< the path, without the line's end and the kernel's " (deleted)"
  Kind kind = Kind::unattributed;
  std::string_view slice;  ///< the last one around the unit, container or VM
  std::string_view unit;   ///< the outermost unit below slices; of a user's, the one below the manager
  std::string_view owner;  ///< whose part of the tree it is: the slice of a user, who may make any name below
  std::string_view container;  ///< 64 hexadecimal digits (ECS, Garden: their own forms); of LXC the name
  std::string_view runtime;  ///< docker containerd cri-o podman nerdctl ecs garden lxc; or the path has none
  std::string_view pod;      ///< uid, with - or _; of a static pod a hash that the API server does not know
  std::string_view qos;      ///< of a pod: burstable besteffort guaranteed
  std::string_view driver;   ///< who names the pod's groups: systemd, or the kubelet itself (cgroupfs)
  std::string_view machine;  ///< a VM's name
  std::string_view monitor;  ///< conmon or lxc.monitor, which watch a container and are none
  SlurmFolder slurm;
  std::optional<std::uint32_t> uid;  ///< of `owner`, or of the Slurm job
  bool deleted = false;              ///< the group is removed and the process a zombie, or about to be
  bool namespaced = false;  ///< outside the reader's cgroup namespace: what is above is not to be seen
};

/// Reads one path, as it stands after the second colon of a line in /proc/PID/cgroup. Any bytes; one pass
/// over them, without allocation. Any thread.
///
/// Users own all below /user.slice and may make any name there: Slurm jobs and pods are not believed there,
/// and a container is its owner's (`owner`). Below a service with Delegate= its account may do the same, and
/// is believed: containerd's pods stand there too.
Path read_path(std::string_view path) noexcept;

/// How much a path tells, 0 to 4: nothing (`/` and /init.scope), anything, container or VM, pod, Slurm
/// job.
int rank(const Path& path) noexcept;

}  // namespace gpumeter::cgroup
