#include "collectors/attribution/names/name_book.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter::workloads {
namespace {

std::vector<NameKey> keys_of(const WorkloadFacts& facts) {
  std::vector<NameKey> keys;
  const auto add = [&](NameKey::By by, const Common<std::string>& fact) {
    if (fact.value()) keys.push_back({by, *fact.value()});
  };
  add(NameKey::By::container_id, facts.container_id);
  add(NameKey::By::pod_uid, facts.pod_uid);
  add(NameKey::By::slurm_job, facts.slurm_job);
  add(NameKey::By::slurm_sluid, facts.slurm_sluid);
  return keys;
}

}  // namespace

void NameBook::publish(const std::string& source, Names names) {
  const MutexLock lock(mutex_);
  const auto known = sources_.find(source);
  if (known == sources_.end() ? names == Names{} : *known->second == names) return;
  sources_[source] = std::make_shared<const Names>(std::move(names));
  ++generation_;
}

std::vector<Label> NameBook::labels_of(const WorkloadFacts& facts) const {
  const std::vector<NameKey> keys = keys_of(facts);
  std::map<std::string, std::string> found;
  const MutexLock lock(mutex_);
  for (const auto& [source, names] : sources_) {
    for (const NameKey& key : keys) {
      const auto entry = names->labels.find(key);
      if (entry == names->labels.end()) continue;
      for (const Label& label : entry->second) found.emplace(label.name, label.value);
    }
  }
  std::vector<Label> labels;
  for (auto& [name, value] : found) labels.push_back({name, value});
  return labels;
}

std::vector<Allocation> NameBook::allocations() const {
  const MutexLock lock(mutex_);
  std::vector<Allocation> all;
  for (const auto& [source, names] : sources_) {
    all.insert(all.end(), names->allocations.begin(), names->allocations.end());
  }
  return all;
}

std::uint64_t NameBook::generation() const {
  const MutexLock lock(mutex_);
  return generation_;
}

}  // namespace gpumeter::workloads
