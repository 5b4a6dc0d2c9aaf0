#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

/// Single names in a cgroup's path. Any bytes, any thread, no allocation. An empty result means that the name
/// is of another kind.
namespace gpumeter::cgroup {

/// Splits a path into its names.
class Names {
 public:
  explicit Names(std::string_view path) noexcept : rest_(path) {}
  /// The next name; empty after the last.
  std::string_view next() noexcept;

 private:
  std::string_view rest_;
};

struct ContainerName {
  std::string_view id;
  std::string_view runtime;  ///< see Path::runtime
};

bool is_digits(std::string_view text) noexcept;

/// 64 lower-case hexadecimal digits: the ids of Docker, containerd, CRI-O and Podman.
bool is_container_id(std::string_view text) noexcept;

bool is_slice(std::string_view name) noexcept;

/// A service or a scope.
bool is_unit(std::string_view name) noexcept;

/// The text between `prefix` and `suffix`.
std::string_view between(std::string_view name, std::string_view prefix, std::string_view suffix) noexcept;

/// docker-ID.scope, cri-containerd-ID, libpod-payload-ID, SLICE:cri-containerd:ID
ContainerName runtime_container(std::string_view name) noexcept;

/// ID below docker, default (nerdctl's first namespace) or garden.
ContainerName child_container(std::string_view parent, std::string_view name) noexcept;

/// ECS names a container by its id, or on Fargate by the task's 32 digits and a number.
bool is_ecs_container(std::string_view name) noexcept;

/// The uid in podUID, in kubepods-burstable-podUID.slice, and in names that extend the latter.
std::string_view pod_uid(std::string_view name) noexcept;

/// crio-conmon-ID, libpod-conmon-ID, libpod_parent/conmon, lxc.monitor.NAME
std::string_view monitor(std::string_view parent, std::string_view name) noexcept;

/// machine-qemu\x2d1\x2dNAME.scope, qemu-1-NAME.libvirt-qemu, qemu.slice/100.scope
std::string_view virtual_machine(std::string_view parent, std::string_view name) noexcept;

/// The job of a batch system in a folder that its daemon creates outside of users' slices: PBS's
/// pbs_jobs.service/jobid/ID (v2: jobs/ID), the slot of HTCondor's htcondor/condor_EXECUTE-FOLDER_SLOT@HOST,
/// LSF's lsf/CLUSTER/job.ID.PID.TIME. `first`: the path's first name.
std::string_view batch_job(std::string_view first, std::string_view parent, std::string_view name) noexcept;

/// lxc/NAME and lxc.payload.NAME at the root, and libvirt's machine-lxc\x2d1\x2dNAME.scope
std::string_view lxc_container(std::string_view parent, std::string_view name, bool at_root) noexcept;

/// user-1000.slice, user@1000.service
std::optional<std::uint32_t> user_of(std::string_view name) noexcept;

}  // namespace gpumeter::cgroup
