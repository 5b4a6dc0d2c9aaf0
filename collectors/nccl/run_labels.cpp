#include "collectors/nccl/run_labels.hpp"

#include <algorithm>

#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/attribution/workload_book.hpp"

namespace gpumeter::nccl {

std::string workload_of(const workloads::ProcessUse& use) {
  const std::string name = cgroup::attribution_of(cgroup::read_path(use.group)).workload;
  return name.empty() ? workloads::unattributed().name : name;
}

bool is_allowed(const std::vector<std::string>& allowed, std::uint32_t uid, const std::string& name) {
  return allowed.empty() || std::ranges::find(allowed, name) != allowed.end() ||
         std::ranges::find(allowed, std::to_string(uid)) != allowed.end();
}

}  // namespace gpumeter::nccl
