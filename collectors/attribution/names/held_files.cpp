#include "collectors/attribution/names/held_files.hpp"

#include <utility>
#include <vector>

#include "collectors/attribution/cgroup/slurm.hpp"
#include "collectors/attribution/names/manual_file.hpp"
#include "collectors/attribution/names/slurm/job_groups.hpp"

namespace gpumeter::held {
namespace {

/// For gpu_workload_info of a job without a process.
std::vector<Label> labels_of(const std::string& job) {
  return {{cgroup::decode_sluid(job) ? "slurm_sluid" : "slurm_job", job}};
}

}  // namespace

Result<workloads::Names> read_held(const std::string& folder, const std::string& sysfs) {
  Result<std::vector<manual::Grant>> grants = manual::read_grants(folder);
  if (!grants) return grants.error();
  std::erase_if(*grants, [](const manual::Grant& grant) { return grant.gpus.empty(); });
  workloads::Names names;
  if (grants->empty()) return names;
  const slurm::JobGroups groups = slurm::read_job_groups(sysfs);
  for (const manual::Grant& grant : *grants) {
    const std::string& job = grant.workload.name;
    if (grant.workload.kind != cgroup::Kind::slurm_job || !groups.folders.contains(job)) continue;
    for (workloads::Allocation& each : manual::allocations_of(grant)) {
      each.source = workloads::AllocationSource::cgroup;
      each.names = labels_of(job);
      names.allocations.push_back(std::move(each));
    }
  }
  return names;
}

}  // namespace gpumeter::held
