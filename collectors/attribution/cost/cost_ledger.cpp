#include "collectors/attribution/cost/cost_ledger.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace gpumeter::workloads {
namespace {

bool is_listed(const WorkloadId& id) { return id != unattributed() && id != all_others(); }

}  // namespace

void CostLedger::publish(std::shared_ptr<const DeviceAccount> account) {
  const MutexLock lock(mutex_);
  std::set<WorkloadId> present;
  for (const AccountEntry& entry : account->entries) {
    if (!is_listed(entry.id)) continue;
    take(entry, account->uuid);
    present.insert(entry.id);
  }
  for (auto& [id, open] : contents_.open) {
    const auto part = open.parts.find(account->uuid);
    if (part != open.parts.end() && !present.contains(id)) part->second.is_present = false;
  }
  close_silent();
  const std::string uuid = account->uuid;
  accounts_[uuid] = std::move(account);
}

// If it began at another time, the device's meter had forgotten an earlier workload of this name.
void CostLedger::take(const AccountEntry& entry, const std::string& uuid) {
  auto found = contents_.open.find(entry.id);
  if (found != contents_.open.end()) {
    const auto part = found->second.parts.find(uuid);
    const bool is_another = part != found->second.parts.end() && part->second.begun != entry.begun;
    if (is_another) {
      close(found->first, found->second);
      contents_.open.erase(found);
      found = contents_.open.end();
    }
  }
  const Nanoseconds seen = realtime_of(entry.seen);
  if (found == contents_.open.end()) {
    found = contents_.open.try_emplace(entry.id).first;
    found->second.begun = realtime_of(entry.begun);
  }
  Open& open = found->second;
  open.parts[uuid] = {entry.cost, entry.is_present, entry.begun};
  open.seen = std::max(open.seen, entry.is_present ? clock_.realtime() : seen);
}

void CostLedger::describe(Names&& names) {
  const MutexLock lock(mutex_);
  std::erase_if(names_, [&](const auto& entry)
                            GPUMETER_REQUIRES(mutex_) { return !contents_.open.contains(entry.first); });
  for (auto& [id, labels] : names) names_[id] = std::move(labels);
}

std::vector<Label> CostLedger::earlier_labels(const WorkloadId& id) const {
  const MutexLock lock(mutex_);
  const auto found = contents_.open.find(id);
  return found == contents_.open.end() ? std::vector<Label>() : found->second.labels;
}

std::vector<WorkloadCost> CostLedger::workloads() {
  const MutexLock lock(mutex_);
  close_silent();
  std::vector<WorkloadCost> all;
  for (const auto& [id, open] : contents_.open) all.push_back(cost_of(id, open));
  all.insert(all.end(), contents_.ended.rbegin(), contents_.ended.rend());
  std::ranges::stable_sort(all, {}, [](const WorkloadCost& cost) {
    return std::pair(cost.has_ended, cost.has_ended ? -cost.seen : Nanoseconds{});
  });
  return all;
}

WorkloadCost CostLedger::cost_of(const WorkloadId& id, const Open& open) const {
  const auto names = names_.find(id);
  WorkloadCost cost{std::string(to_string(id.kind)), id.name, open.labels, open.begun, open.seen, true, {}};
  if (names != names_.end()) cost.labels = names->second;
  const bool is_read = clock_.realtime() - open.seen < kSilent;
  for (const auto& [uuid, part] : open.parts) {
    cost.devices.push_back(part.cost);
    if (part.is_present && is_read) cost.has_ended = false;
  }
  std::ranges::sort(cost.devices, {}, &DeviceCost::index);
  return cost;
}

void CostLedger::close(const WorkloadId& id, const Open& open) {
  WorkloadCost cost = cost_of(id, open);
  cost.has_ended = true;
  const auto later = [&](const WorkloadCost& other) { return other.seen > cost.seen; };
  const auto place = std::ranges::find_if(contents_.ended, later);
  contents_.ended.insert(place, std::move(cost));
  names_.erase(id);
  drop_old();
}

void CostLedger::close_silent() {
  const Nanoseconds now = clock_.realtime();
  for (auto open = contents_.open.begin(); open != contents_.open.end();) {
    const auto next = std::next(open);
    // The device's meter forgets it a look later.
    constexpr Nanoseconds kLook = std::chrono::minutes(1);
    if (now - open->second.seen >= kStays + kLook) {
      close(open->first, open->second);
      contents_.open.erase(open);
    }
    open = next;
  }
  drop_old();
}

void CostLedger::drop_old() {
  const Nanoseconds now = clock_.realtime();
  std::deque<WorkloadCost>& ended = contents_.ended;
  while (!ended.empty() && (ended.size() > kMostEnded || now - ended.front().seen >= kEndedStays)) {
    ended.pop_front();
  }
}

std::optional<DeviceAccount> CostLedger::take_earlier(const std::string& uuid, bool counts_own_energy) {
  const MutexLock lock(mutex_);
  const auto found = contents_.earlier.find(uuid);
  if (found == contents_.earlier.end()) return std::nullopt;
  DeviceAccount account = std::move(found->second);
  contents_.earlier.erase(found);
  if (is_of_this_boot_) return account;
  if (!counts_own_energy) return std::nullopt;
  std::erase_if(account.entries, [](const AccountEntry& entry) { return entry.id != unattributed(); });
  return account;
}

void CostLedger::note_earlier_facts(const WorkloadId& id, WorkloadBook& book) {
  const MutexLock lock(mutex_);
  const auto found = contents_.facts.find(id);
  if (found == contents_.facts.end()) return;
  EarlierFacts& facts = found->second;
  facts.attribution.container_runtime = facts.runtime;
  book.note(id, facts.attribution, facts.uid);
  if (facts.is_measured) book.note_measured(id);
}

}  // namespace gpumeter::workloads
