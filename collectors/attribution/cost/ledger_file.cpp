/// CostLedger's section of the state file.
#include <cmath>
#include <limits>
#include <string>

#include "base/records.hpp"
#include "collectors/attribution/cost/cost_ledger.hpp"

namespace gpumeter::workloads {
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
