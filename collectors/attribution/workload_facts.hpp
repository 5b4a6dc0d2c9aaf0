#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::workloads {

/// What all processes of a workload have in common, or nothing once two of them differ: then it stays away,
/// so that a label does not come and go with the processes.
template <class T>
class Common {
 public:
  /// Whether this changed it. What one process does not know says nothing against the others.
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

/// What gpu_workload_info says of a workload beside its name.
struct WorkloadFacts {
  Common<std::string> unit;          ///< none of what has a new name each time it is started
  Common<std::string> container_id;  ///< where it is one container
  Common<std::string> container_runtime;
  Common<std::string> pod_uid;
  Common<std::string> slurm_job;
  Common<std::string> slurm_sluid;
  Common<std::uint32_t> uid;
  /// Some driver tells what its processes do or hold; else its shares are equal parts.
  bool is_measured = false;

  /// Takes in one more process, whose real user is `real_uid`. Whether something changed.
  bool merge(const cgroup::Attribution& process, std::optional<std::uint32_t> real_uid);
};

}  // namespace gpumeter::workloads
