#include "collectors/attribution/device_meter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "collectors/attribution/cgroup/cache.hpp"

namespace gpumeter::workloads {
namespace {

/// nullopt if the driver's value is impossible.
std::optional<double> sane(std::optional<double> amount) {
  return amount && std::isfinite(*amount) && *amount >= 0 ? amount : std::nullopt;
}

void add(std::optional<double>& sum, std::optional<double> amount) {
  if (amount) sum = sum.value_or(0) + *amount;
}

void raise(std::optional<double>& peak, std::optional<double> amount) {
  if (amount) peak = std::max(peak.value_or(0), *amount);
}

}  // namespace

bool divide(std::span<const Claim> claims, std::vector<double>& parts) {
  using Measure = double (*)(const Claim&);
  constexpr Measure kMeasures[] = {[](const Claim& claim) { return claim.busy_seconds; },
                                   [](const Claim& claim) { return claim.memory_bytes; },
                                   [](const Claim& claim) { return static_cast<double>(claim.processes); }};
  parts.assign(claims.size(), 0);
  for (const Measure measure : kMeasures) {
    std::transform(claims.begin(), claims.end(), parts.begin(), measure);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    if (sum <= 0) continue;
    for (double& part : parts) part /= sum;
    return true;
  }
  return false;
}

DeviceMeter::DeviceMeter(std::string procfs, bool with_names, std::shared_ptr<WorkloadBook> book)
    : procfs_(std::move(procfs)),
      with_names_(with_names),
      book_(std::move(book)),
      unattributed_(workloads_[unattributed()]) {
  book_->open(unattributed());
  unattributed_.part = 1;
}

DeviceMeter::~DeviceMeter() {
  for (const auto& [id, workload] : workloads_) book_->close(id);
}

void DeviceMeter::resume(const DeviceAccount& account) {
  for (const AccountEntry& earlier : account.entries) {
    const cgroup::Attribution attribution{.kind = earlier.id.kind, .workload = earlier.id.name};
    Workload& workload = earlier.id == unattributed() ? unattributed_
                         : earlier.id == all_others() ? workloads_.try_emplace(all_others()).first->second
                                                      : workload_of(attribution).second;
    workload.energy_joules += earlier.energy_joules;
    add(workload.busy_seconds, sane(earlier.busy_counter));
    raise(workload.peak_memory, earlier.cost.peak_memory);
    workload.part = earlier.part;
    workload.last_seen = earlier.seen;
    if (&workload != &unattributed_) workload.begun = earlier.begun;
    workload.is_measured = earlier.busy_counter.has_value();
  }
  last_energy_ = account.energy_total;
}

void DeviceMeter::add_energy(double total_joules) {
  if (!std::isfinite(total_joules)) return;
  const bool is_first = !last_energy_;
  const double added = std::max(total_joules - last_energy_.value_or(0), 0.0);
  last_energy_ = total_joules;
  if (is_first) {
    unattributed_.energy_joules += added;
    return;
  }
  for (auto& [id, workload] : workloads_) workload.energy_joules += added * workload.part;
  for (auto& [id, process] : processes_) process.use.energy_joules += added * process.part;
}

void DeviceMeter::update(Nanoseconds now, std::span<const DeviceProcess> listed, Nanoseconds realtime) {
  begin_look();
  looked_at_ = realtime;
  is_known_ = true;
  if (!listed.empty() && !cgroups_) cgroups_.emplace(procfs_);
  if (cgroups_) cgroups_->begin_pass();
  for (const DeviceProcess& process : listed) account(now, claimant_of(process), process);
  divide_energy();
  note_peaks();
  forget(now);
  divide_shares(now);
}

void DeviceMeter::interrupt() {
  begin_look();
  unattributed_.part = 1;
  is_known_ = false;
  ++generation_;
}

void DeviceMeter::begin_look() {
  ++look_;
  claims_.clear();
  claimants_.clear();
  for (auto& [id, workload] : workloads_) {
    workload.processes = 0;
    workload.part = 0;
    workload.memory_bytes.reset();
  }
  for (auto& [id, process] : processes_) {
    process.use.present = false;
    process.part = 0;
    process.memory_bytes.reset();
  }
}

// A virtual machine is a workload by itself: the host sees no process of it on the device.
DeviceMeter::Claimant DeviceMeter::claimant_of(const DeviceProcess& listed) {
  if (listed.vm.empty()) return claimant_of_process(listed.pid);
  cgroup::Attribution machine;
  machine.kind = cgroup::Kind::vm;
  machine.workload = listed.vm;
  return {&workload_of(machine), nullptr};
}

DeviceMeter::Claimant DeviceMeter::claimant_of_process(int pid) {
  const cgroup::Process& found = cgroups_->of(pid);
  // A process that ended after it was listed keeps the attribution of the previous look.
  Process* last = found.attribution.reason == cgroup::Reason::gone ? last_of(pid) : nullptr;
  if (last != nullptr) return {last->workload, last};
  WorkloadEntry& workload = workload_of(found.attribution);
  Process* process = process_of({pid, found.start_ticks});
  if (process != nullptr) recognise(*process, found, workload);
  return {&workload, process};
}

Process* DeviceMeter::last_of(int pid) {
  const auto end = processes_.upper_bound({pid, std::numeric_limits<std::uint64_t>::max()});
  if (end == processes_.begin()) return nullptr;
  const auto last = std::prev(end);
  return last->first.pid == pid && last->second.look + 1 == look_ ? &last->second : nullptr;
}

WorkloadEntry& DeviceMeter::workload_of(const cgroup::Attribution& attribution) {
  const WorkloadId id =
      attribution.workload.empty() ? unattributed() : WorkloadId{attribution.kind, attribution.workload};
  if (const auto found = workloads_.find(id); found != workloads_.end()) return *found;
  if (named_ < kMostWorkloads && book_->open(id)) {
    ++named_;
    ++generation_;
    WorkloadEntry& entry = *workloads_.try_emplace(id).first;
    entry.second.begun = looked_at_;
    return entry;
  }
  const auto [others, is_new] = workloads_.try_emplace(all_others());
  if (is_new) {
    book_->open(all_others());
    others->second.begun = looked_at_;
    ++generation_;
  }
  return *others;
}

Process* DeviceMeter::process_of(const ProcessId& id) {
  if (const auto found = processes_.find(id); found != processes_.end()) return &found->second;
  if (processes_.size() >= kMostProcesses) make_room();
  if (processes_.size() >= kMostProcesses) return nullptr;
  Process& process = processes_[id];
  process.use.id = id;
  if (with_names_) process.name = cgroup::name_of(procfs_, id.pid);
  return &process;
}

// Processes of the previous look are kept, because the present look may still find them.
void DeviceMeter::make_room() {
  if (full_look_ == look_) return;
  full_look_ = look_;
  std::erase_if(processes_, [this](const auto& entry) { return entry.second.look + 1 < look_; });
}

void DeviceMeter::recognise(Process& process, const cgroup::Process& found, WorkloadEntry& workload) {
  const std::optional<std::uint32_t> uid = cgroup::real_uid_of(procfs_, process.use.id.pid);
  const bool is_same =
      process.workload == &workload && process.use.group == found.group && process.use.uid == uid;
  if (is_same) return;
  process.workload = &workload;
  process.use.group = found.group;
  process.use.uid = uid;
  book_->note(workload.first, found.attribution, uid);
}

void DeviceMeter::account(Nanoseconds now, const Claimant& claimant, const DeviceProcess& listed) {
  const std::optional<double> busy = sane(listed.busy_seconds);
  const std::optional<double> memory = sane(listed.memory_bytes);
  claims_.push_back({busy.value_or(0), memory.value_or(0), 1});
  claimants_.push_back(claimant);
  Workload& workload = claimant.workload->second;
  ++workload.processes;
  workload.last_seen = now;
  workload.recent.add(now, busy.value_or(0));
  add(workload.busy_seconds, busy);
  add(workload.memory_bytes, memory);
  if ((busy || memory) && !std::exchange(workload.is_measured, true)) {
    book_->note_measured(claimant.workload->first);
  }
  if (claimant.process == nullptr) return;
  Process& process = *claimant.process;
  if (process.look + 1 != look_) ++generation_;
  process.look = look_;
  process.last_seen = now;
  process.use.present = true;
  add(process.use.busy_seconds, busy);
  add(process.memory_bytes, memory);
}

void DeviceMeter::divide_energy() {
  unattributed_.part = divide(claims_, parts_) ? 0 : 1;
  for (std::size_t i = 0; i < claimants_.size(); ++i) {
    claimants_[i].workload->second.part += parts_[i];
    if (claimants_[i].process != nullptr) claimants_[i].process->part += parts_[i];
  }
}

void DeviceMeter::note_peaks() noexcept {
  for (auto& [id, workload] : workloads_) raise(workload.peak_memory, workload.memory_bytes);
}

void DeviceMeter::divide_shares(Nanoseconds now) {
  claims_.clear();
  for (auto& [id, workload] : workloads_) {
    claims_.push_back({workload.recent.sum(now), workload.memory_bytes.value_or(0), workload.processes});
  }
  const bool is_used = divide(claims_, parts_);
  auto part = parts_.begin();
  for (auto& [id, workload] : workloads_) workload.share = *part++;
  if (!is_used) unattributed_.share = 1;
}

void DeviceMeter::forget(Nanoseconds now) {
  std::erase_if(processes_, [&](const auto& entry) {
    if (entry.second.look + 1 == look_) ++generation_;  // it left since the previous look
    return entry.second.look != look_ && now - entry.second.last_seen >= kProcessStays;
  });
  std::erase_if(workloads_, [&](const auto& entry) {
    const auto& [id, workload] = entry;
    const bool stays = workload.processes > 0 || now - workload.last_seen < kWorkloadStays;
    if (stays || &workload == &unattributed_) return false;
    if (id != all_others()) --named_;
    ++generation_;
    book_->close(id);
    return true;
  });
}

std::vector<ProcessUse> DeviceMeter::uses() const {
  std::vector<ProcessUse> uses;
  uses.reserve(processes_.size());
  for (const auto& [id, process] : processes_) uses.push_back(process.use);
  return uses;
}

}  // namespace gpumeter::workloads
