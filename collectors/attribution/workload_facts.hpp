#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::workloads {

/// The labels `kind` and `workload`, which identify a workload on the machine.
struct WorkloadId {
  cgroup::Kind kind = cgroup::Kind::unattributed;
  std::string name;

  auto operator<=>(const WorkloadId&) const = default;
};

/// Processes without a group, and the use of a device while it has no process.
inline WorkloadId unattributed() { return {cgroup::Kind::unattributed, "unattributed"}; }

/// The workloads beyond the limit. A group's name is a path, a slice or a monitor's, never this.
inline WorkloadId all_others() { return {cgroup::Kind::other, "_other"}; }

/// A fact shared by all processes of a workload. Once two processes differ it stays empty, so that a label
/// does not come and go with the processes.
template <class T>
class Common {
 public:
  /// Returns true if the fact changed. A process without the fact does not contradict the others.
  bool merge(const std::optional<T>& value) {
    if (!value || differ_ || value_ == value) return false;
    differ_ = value_.has_value();
    value_ = differ_ ? std::nullopt : value;
    return true;
  }
  const std::optional<T>& value() const noexcept { return value_; }

 private:
  std::optional<T> value_;
  bool differ_ = false;
};

/// The labels of gpu_workload_info, in addition to the workload's name.
struct WorkloadFacts {
  Common<std::string> unit;          ///< empty for units with a new name at each start
  Common<std::string> container_id;  ///< set if the workload is one container
  Common<std::string> container_runtime;
  Common<std::string> pod_uid;
  Common<std::string> slurm_job;
  Common<std::string> slurm_sluid;
  Common<std::uint32_t> uid;
  Common<std::string> group;  ///< path of its control group; no label
  /// True if a driver reports busy time or memory of its processes; otherwise its shares are equal parts.
  bool is_measured = false;

  /// Adds one more process, whose real user is `real_uid`. Returns true if a fact changed.
  bool merge(const cgroup::Attribution& process, std::optional<std::uint32_t> real_uid);
};

}  // namespace gpumeter::workloads
