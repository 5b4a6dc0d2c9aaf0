#include "collectors/attribution/cost/cost_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/records.hpp"

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

// CostLedger's section of the state file.

namespace {

RecordWriter& begin(RecordWriter& out, std::string_view kind, const WorkloadId& id) {
  return out.begin(kind).text(to_string(id.kind)).text(id.name);
}

void write(RecordWriter& out, const DeviceCost& cost) {
  out.begin("cost").text(cost.uuid).integer(cost.index).number(cost.joules).number(cost.held_seconds);
  out.number(cost.busy_seconds).number(cost.idle_seconds).number(cost.peak_memory);
  for (const auto& [cause, seconds] : cost.throttled_seconds) out.text(cause).number(seconds);
}

void write(RecordWriter& out, const WorkloadCost& cost) {
  out.begin("ended").text(cost.kind).text(cost.workload).time(cost.begun).time(cost.seen);
  for (const Label& label : cost.labels) out.text(label.name).text(label.value);
  for (const DeviceCost& device : cost.devices) write(out, device);
}

void write(RecordWriter& out, const DeviceAccount& account) {
  out.begin("account").text(account.uuid).integer(account.index).number(account.energy_total);
  for (const AccountEntry& entry : account.entries) {
    begin(out, "entry", entry.id).number(entry.energy_joules).number(entry.busy_counter).number(entry.part);
    out.flag(entry.is_present).time(entry.begun).time(entry.seen);
    write(out, entry.cost);
  }
}

void write(RecordWriter& out, const WorkloadBook::Workload& workload) {
  const WorkloadFacts& facts = workload.facts;
  begin(out, "facts", workload.id);
  for (const Common<std::string>* fact :
       {&facts.unit, &facts.container_id, &facts.container_runtime, &facts.pod_uid, &facts.slurm_job,
        &facts.slurm_sluid, &facts.group}) {
    out.text(fact->value().value_or(""));
  }
  const std::optional<std::uint32_t>& uid = facts.uid.value();
  out.integer(uid ? std::int64_t{*uid} : -1).flag(facts.is_measured);
}

/// A figure: finite and not negative.
double amount(RecordReader& in) {
  const double value = in.number();
  if (!std::isfinite(value) || value < 0) in.fail();
  return value;
}

std::optional<double> optional_amount(RecordReader& in) {
  const std::optional<double> value = in.optional_number();
  if (value && (!std::isfinite(*value) || *value < 0)) in.fail();
  return value;
}

WorkloadId id_in(RecordReader& in) {
  const auto kind = cgroup::kKindNames.find(in.text());
  WorkloadId id{kind.value_or(cgroup::Kind::unattributed), in.text()};
  if (!kind || id.name.empty()) in.fail();
  return id;
}

unsigned index_in(RecordReader& in) {
  return static_cast<unsigned>(in.integer(0, std::numeric_limits<unsigned>::max()));
}

std::vector<Label> labels_in(RecordReader& in) {
  std::vector<Label> labels;
  while (in.has_field() && !in.failed()) {
    std::string name = in.text();
    labels.push_back({std::move(name), in.text()});
  }
  return labels;
}

DeviceCost cost_in(RecordReader& in) {
  DeviceCost cost;
  cost.uuid = in.text();
  cost.index = index_in(in);
  cost.joules = optional_amount(in);
  cost.held_seconds = amount(in);
  cost.busy_seconds = optional_amount(in);
  cost.idle_seconds = optional_amount(in);
  cost.peak_memory = optional_amount(in);
  while (in.has_field() && !in.failed()) {
    const std::string cause = in.text();
    cost.throttled_seconds[cause] = amount(in);
  }
  return cost;
}

AccountEntry entry_in(RecordReader& in) {
  AccountEntry entry;
  entry.id = id_in(in);
  entry.energy_joules = amount(in);
  entry.busy_counter = optional_amount(in);
  entry.part = amount(in);
  if (entry.part > 1) in.fail();
  entry.is_present = in.flag();
  entry.begun = in.time();
  entry.seen = in.time();
  return entry;
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
    if (kind == "account") return take_account();
    if (kind == "entry" && account_ != nullptr) {
      entry_ = &account_->entries.emplace_back(entry_in(in_));
    } else if (kind == "open" || kind == "ended") {
      take_workload(kind == "open");
    } else if (kind == "facts") {
      take_facts();
    } else {
      in_.fail();
    }
  }

  void take_account() {
    const std::string uuid = in_.text();
    account_ = &contents_.earlier[uuid];
    if (!account_->uuid.empty() || uuid.empty()) in_.fail();
    account_->uuid = uuid;
    account_->index = index_in(in_);
    account_->energy_total = optional_amount(in_);
  }

  void take_workload(bool is_open) {
    const WorkloadId id = id_in(in_);
    const Nanoseconds begun = in_.time();
    const Nanoseconds seen = in_.time();
    std::vector<Label> labels = labels_in(in_);
    if (is_open) {
      open_ = &contents_.open[id];
      *open_ = {begun, seen, {}, std::move(labels)};
    } else {
      ended_ = &contents_.ended.emplace_back(
          WorkloadCost{std::string(to_string(id.kind)), id.name, std::move(labels), begun, seen, true, {}});
    }
  }

  void take_cost() {
    const DeviceCost cost = cost_in(in_);
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
    const WorkloadId id = id_in(in_);
    CostLedger::EarlierFacts& facts = contents_.facts[id];
    cgroup::Attribution& attribution = facts.attribution;
    attribution.kind = id.kind;
    attribution.workload = id.name;
    attribution.unit = in_.text();
    attribution.container_id = in_.text();
    facts.runtime = in_.text();
    attribution.pod_uid = in_.text();
    attribution.slurm_job = in_.text();
    attribution.slurm_sluid = in_.text();
    attribution.group = in_.text();
    const std::int64_t uid = in_.integer(-1, std::numeric_limits<std::uint32_t>::max());
    if (uid >= 0) facts.uid = static_cast<std::uint32_t>(uid);
    facts.is_measured = in_.flag();
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
    begin(out, "open", id).time(open.begun).time(open.seen);
    for (const Label& label : names != names_.end() ? names->second : open.labels) {
      out.text(label.name).text(label.value);
    }
    for (const auto& [uuid, part] : open.parts) write(out, part.cost);
  }
  for (const WorkloadCost& ended : contents_.ended) write(out, ended);
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
