#pragma once

#include <compare>
#include <string>

#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::workloads {

/// The labels `kind` and `workload`, which tell a workload from all others of the machine.
struct WorkloadId {
  cgroup::Kind kind = cgroup::Kind::unattributed;
  std::string name;

  auto operator<=>(const WorkloadId&) const = default;
};

/// What belongs to nobody: processes that no group tells of, and what a device does with nobody on it.
inline WorkloadId unattributed() { return {cgroup::Kind::unattributed, "unattributed"}; }

/// Those beyond the most that there may be. A group's name is a path, a slice or a monitor's, never this.
inline WorkloadId all_others() { return {cgroup::Kind::other, "_other"}; }

}  // namespace gpumeter::workloads
