#include "collectors/attribution/workload_book.hpp"

#include <utility>

namespace gpumeter::workloads {
bool WorkloadFacts::merge(const cgroup::Attribution& process, std::optional<std::uint32_t> real_uid) {
  bool changed = false;
  for (const WorkloadFact& fact : kWorkloadFacts) {
    const std::string& text = process.*fact.of_process;
    const bool is_known = !text.empty() && !(process.transient && fact.common == &WorkloadFacts::unit);
    changed = (this->*fact.common).merge(is_known ? std::optional(text) : std::nullopt) || changed;
  }
  return uid.merge(process.uid ? process.uid : real_uid) || changed;
}

namespace {

bool is_counted(const WorkloadId& id) { return id != unattributed() && id != all_others(); }

}  // namespace

bool WorkloadBook::open(const WorkloadId& id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end()) {
    ++found->second.devices;
    return true;
  }
  if (is_counted(id) && counted_ >= most_workloads_) return false;
  counted_ += is_counted(id) ? 1U : 0U;
  entries_[id].devices = 1;
  ++generation_;
  return true;
}

void WorkloadBook::close(const WorkloadId& id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || --found->second.devices > 0) return;
  entries_.erase(found);
  counted_ -= is_counted(id) ? 1U : 0U;
  ++generation_;
}

// `_other` and `unattributed` take no facts: their processes have nothing in common.
void WorkloadBook::note(const WorkloadId& id, const cgroup::Attribution& process,
                        std::optional<std::uint32_t> real_uid) {
  if (!is_counted(id)) return;
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.facts.merge(process, real_uid)) ++generation_;
}

bool WorkloadBook::lacks_environment(const WorkloadId& id) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  return is_counted(id) && found != entries_.end() && !found->second.facts.environment;
}

void WorkloadBook::note_environment(const WorkloadId& id, std::vector<Label> labels) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.facts.environment) return;
  found->second.facts.environment = std::move(labels);
  ++generation_;
}

void WorkloadBook::note_measured(const WorkloadId& id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || std::exchange(found->second.facts.is_measured, true)) return;
  ++generation_;
}

std::vector<WorkloadBook::Workload> WorkloadBook::workloads() const {
  MutexLock lock(mutex_);
  std::vector<Workload> workloads;
  if (uses_.empty()) return workloads;
  workloads.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) workloads.push_back({id, entry.facts});
  return workloads;
}

std::uint64_t WorkloadBook::generation() const {
  MutexLock lock(mutex_);
  return generation_;
}

void WorkloadBook::publish(std::shared_ptr<const DeviceUse> use) {
  MutexLock lock(mutex_);
  if (uses_.empty()) ++generation_;
  std::shared_ptr<const DeviceUse>& place = uses_[use->uuid];
  place = std::move(use);
}

void WorkloadBook::hide(const std::string& uuid) {
  MutexLock lock(mutex_);
  if (uses_.erase(uuid) > 0 && uses_.empty()) ++generation_;
}

void WorkloadBook::withdraw(const std::shared_ptr<const DeviceUse>& last) {
  MutexLock lock(mutex_);
  if (last == nullptr) return;
  const auto found = uses_.find(last->uuid);
  if (found == uses_.end() || found->second != last) return;
  uses_.erase(found);
  if (uses_.empty()) ++generation_;
}

std::vector<std::shared_ptr<const DeviceUse>> WorkloadBook::uses() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<const DeviceUse>> uses;
  uses.reserve(uses_.size());
  for (const auto& [uuid, use] : uses_) uses.push_back(use);
  return uses;
}

}  // namespace gpumeter::workloads
