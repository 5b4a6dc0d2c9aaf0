#include "collectors/attribution/workload_facts.hpp"

#include <string_view>

namespace gpumeter::workloads {
namespace {

std::optional<std::string> known(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

}  // namespace

bool WorkloadFacts::merge(const cgroup::Attribution& process, std::optional<std::uint32_t> real_uid) {
  bool changed = unit.merge(process.transient ? std::nullopt : known(process.unit));
  changed = container_id.merge(known(process.container_id)) || changed;
  changed = container_runtime.merge(known(process.container_runtime)) || changed;
  changed = pod_uid.merge(known(process.pod_uid)) || changed;
  changed = slurm_job.merge(known(process.slurm_job)) || changed;
  changed = slurm_sluid.merge(known(process.slurm_sluid)) || changed;
  changed = group.merge(known(process.group)) || changed;
  return uid.merge(process.uid ? process.uid : real_uid) || changed;
}

}  // namespace gpumeter::workloads
