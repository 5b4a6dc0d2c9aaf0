#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "collectors/attribution/device_use.hpp"

namespace gpumeter::nccl {

/// The labels of a run's families.
struct RunLabels {
  std::string user;
  std::string run;

  auto operator<=>(const RunLabels&) const = default;
};

/// The name of a process's workload, as in gpu_workload_info: the run's name if no job reports one.
std::string workload_of(const workloads::ProcessUse& use);

/// Whether the user is among `allowed`: names, or uids in digits. An empty list allows all.
bool is_allowed(const std::vector<std::string>& allowed, std::uint32_t uid, const std::string& name);

}  // namespace gpumeter::nccl
