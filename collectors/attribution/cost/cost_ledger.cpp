#include "collectors/attribution/cost/cost_ledger.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/records.hpp"

namespace gpumeter {

template <class Fields>
void fields(Fields& f, DeviceCost& cost) {
  f(cost.uuid, cost.index).amounts(cost.joules, cost.held_seconds, cost.busy_seconds, cost.idle_seconds);
  f.amounts(cost.peak_memory).to_end(cost.throttled_seconds);
}

}  // namespace gpumeter

namespace gpumeter::workloads {

/// Without `cost`, which has a line of its own. Files of earlier versions have no `idle_joules`.
template <class Fields>
void fields(Fields& f, AccountEntry& entry) {
  f(entry.id).amounts(entry.energy_joules, entry.busy_counter, entry.part).check(entry.part <= 1);
  f(entry.is_present, entry.begun, entry.seen);
  if constexpr (Fields::kReads) {
    if (!f.has_field()) return;
  }
  f.amounts(entry.idle_joules);
}

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
  book.note(id, found->second.attribution, std::nullopt);
  if (found->second.is_measured) book.note_measured(id);
}

// CostLedger's section of the state file.

namespace {

/// Labels up to the line's end.
void put(RecordWriter& out, const std::vector<Label>& labels) {
  for (const Label& label : labels) out(label.name, label.value);
}
void get(RecordReader& in, std::vector<Label>& labels) {
  while (in.has_field()) {
    Label& label = labels.emplace_back();
    in(label.name, label.value);
  }
}

void write(RecordWriter& out, const DeviceAccount& account) {
  out.begin("account")(account.uuid, account.index, account.energy_total);
  for (const AccountEntry& entry : account.entries) {
    out.begin("entry")(entry);
    out.begin("cost")(entry.cost);
  }
}

void write(RecordWriter& out, const WorkloadBook::Workload& workload) {
  out.begin("facts")(workload.id);
  for (const WorkloadFact& fact : kWorkloadFacts) out((workload.facts.*fact.common).value().value_or(""));
  const std::optional<std::uint32_t>& uid = workload.facts.uid.value();
  out(uid ? std::int64_t{*uid} : -1, workload.facts.is_measured);
}

}  // namespace

/// Reads the lines into contents of their own. A line `cost` belongs to the workload of the line before it.
class LedgerReader {
 public:
  explicit LedgerReader(std::string_view section) : in_(section) {}

  Result<CostLedger::Contents> read() {
    while (in_.next()) take_line();
    if (in_.failed()) return Error("the costs of workloads, line " + std::to_string(in_.line()));
    return std::move(contents_);
  }

 private:
  void take_line() {
    const std::string_view kind = in_.kind();
    if (kind == "cost") return take_cost();
    entry_ = nullptr;
    open_ = nullptr;
    ended_ = nullptr;
    if (kind == "account") {
      take_account();
    } else if (kind == "entry" && account_ != nullptr) {
      in_(*(entry_ = &account_->entries.emplace_back()));
    } else if (kind == "open") {
      open_ = &contents_.open[in_.take<WorkloadId>()];
      in_(open_->begun, open_->seen);
      get(in_, open_->labels);
    } else if (kind == "ended") {
      ended_ = &contents_.ended.emplace_back();
      const auto id = in_.take<WorkloadId>();
      in_(ended_->begun, ended_->seen);
      ended_->kind = to_string(id.kind);
      ended_->workload = id.name;
      ended_->has_ended = true;
      get(in_, ended_->labels);
    } else {
      in_.check(kind == "facts");
      take_facts();
    }
  }

  void take_account() {
    const auto uuid = in_.take<std::string>();
    account_ = &contents_.earlier[uuid];
    in_.check(account_->uuid.empty() && !uuid.empty())(account_->index).amounts(account_->energy_total);
    account_->uuid = uuid;
  }

  void take_cost() {
    const auto cost = in_.take<DeviceCost>();
    if (entry_ != nullptr) {
      entry_->cost = cost;
    } else if (open_ != nullptr) {
      open_->parts[cost.uuid] = {cost, false, Nanoseconds{}};
    } else if (ended_ != nullptr) {
      ended_->devices.push_back(cost);
    } else {
      in_.fail();
    }
  }

  void take_facts() {
    const auto id = in_.take<WorkloadId>();
    CostLedger::EarlierFacts& facts = contents_.facts[id];
    facts.attribution.kind = id.kind;
    facts.attribution.workload = id.name;
    for (const WorkloadFact& fact : kWorkloadFacts) in_(facts.attribution.*fact.of_process);
    const auto uid = in_.take<std::int64_t>();
    in_(facts.is_measured).check(uid >= -1 && uid <= std::numeric_limits<std::uint32_t>::max());
    if (uid >= 0) facts.attribution.uid = static_cast<std::uint32_t>(uid);
  }

  RecordReader in_;
  CostLedger::Contents contents_;
  // The object of the last line.
  DeviceAccount* account_ = nullptr;
  AccountEntry* entry_ = nullptr;
  CostLedger::Open* open_ = nullptr;
  WorkloadCost* ended_ = nullptr;
};

// An account that no device has taken yet is kept: its device may return.
std::string CostLedger::save(const WorkloadBook& book) {
  RecordWriter out;
  const std::vector<WorkloadBook::Workload> facts = book.workloads();
  const MutexLock lock(mutex_);
  close_silent();
  for (const auto& [uuid, account] : accounts_) write(out, *account);
  for (const auto& [uuid, account] : contents_.earlier) {
    if (is_of_this_boot_ && !accounts_.contains(uuid)) write(out, account);
  }
  for (const auto& [id, open] : contents_.open) {
    const auto names = names_.find(id);
    out.begin("open")(id, open.begun, open.seen);
    put(out, names != names_.end() ? names->second : open.labels);
    for (const auto& [uuid, part] : open.parts) out.begin("cost")(part.cost);
  }
  for (const WorkloadCost& ended : contents_.ended) {
    out.begin("ended")(ended.kind, ended.workload, ended.begun, ended.seen);
    put(out, ended.labels);
    for (const DeviceCost& cost : ended.devices) out.begin("cost")(cost);
  }
  for (const WorkloadBook::Workload& workload : facts) write(out, workload);
  return out.take();
}

Result<Done> CostLedger::load(std::string_view section, Nanoseconds saved_at, bool is_of_this_boot) {
  Result<Contents> read = LedgerReader(section).read();
  if (!read) return read.error();
  const MutexLock lock(mutex_);
  contents_ = *std::move(read);
  is_of_this_boot_ = is_of_this_boot;
  const bool is_long = clock_.realtime() - saved_at > kLongestRestart;
  for (auto& [uuid, account] : contents_.earlier) {
    for (AccountEntry& entry : account.entries) {
      if (is_long || !is_of_this_boot) entry.part = entry.id == unattributed() ? 1 : 0;
      const auto open = contents_.open.find(entry.id);
      if (open == contents_.open.end()) continue;
      const auto part = open->second.parts.find(uuid);
      if (part != open->second.parts.end()) part->second.begun = entry.begun;
    }
  }
  if (!is_of_this_boot) {
    for (const auto& [id, open] : contents_.open) close(id, open);
    contents_.open.clear();
    contents_.facts.clear();
  }
  drop_old();
  return Done{};
}

}  // namespace gpumeter::workloads
