#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/process_list.hpp"
#include "collectors/attribution/cgroup/cache.hpp"
#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/attribution/shares.hpp"
#include "collectors/attribution/workload_book.hpp"

namespace gpumeter::workloads {

/// What a workload costs, as CostLedger keeps it.
struct Tally {
  DeviceCost cost;
  double busy_counter = 0;   ///< Workload::busy_seconds at the last count of costs
  bool was_present = false;  ///< then
  Nanoseconds begun{};       ///< CLOCK_MONOTONIC of the first count
};

/// A workload on one device. Its counters start when it was first seen there.
struct Workload {
  double energy_joules = 0;
  double idle_joules = 0;              ///< the part of it that the device uses without activity
  std::optional<double> busy_seconds;  ///< nullopt: never reported by the driver
  std::optional<double> memory_bytes;  ///< nullopt: it has no process, or the driver does not report memory
  std::optional<double> peak_memory;   ///< the highest memory_bytes of any look
  double share = 0;
  std::size_t processes = 0;
  double part = 0;       ///< its part of future energy of activity
  double idle_part = 0;  ///< and of the other
  Nanoseconds last_seen{};
  /// CLOCK_REALTIME of the look that saw it first, when its counters were 0. Zero: unknown, and
  /// `unattributed`, whose energy begins with that of the device.
  Nanoseconds begun{};
  LastMinute recent;  ///< busy time
  bool is_measured = false;
  std::optional<Tally> tally;  ///< nullopt: not counted yet
};
using WorkloadEntry = std::pair<const WorkloadId, Workload>;

/// A process on one device, or one that left within the last minute.
struct Process {
  ProcessUse use;
  std::string name;                    ///< only if the meter reads names
  std::optional<double> memory_bytes;  ///< at the last look
  double part = 0;                     ///< its part of future energy of activity
  double idle_part = 0;                ///< and of the other
  Nanoseconds last_seen{};
  std::uint64_t look = 0;  ///< the last look in which it was found
  WorkloadEntry* workload = nullptr;
};

/// Measures the workloads on one device. New energy is assigned at once to the workloads of the last look, so
/// their sum always equals the device's energy. Removing a workload also removes its past energy. One thread,
/// the device's lane. Only update() makes system calls.
class DeviceMeter {
 public:
  /// Limit in addition to `unattributed` and `_other`; each workload has up to five series.
  static constexpr std::size_t kMostWorkloads = 64;
  /// How long a workload stays after its last process, so that a scraper reads its final values.
  static constexpr Nanoseconds kWorkloadStays = std::chrono::minutes(10);
  static constexpr Nanoseconds kProcessStays = std::chrono::minutes(1);
  /// Limit of processes with their own values, as many as cgroup::Cache caches. Further processes count only
  /// for their workloads. If the table is full, processes that left are removed before their minute is over.
  static constexpr std::size_t kMostProcesses = cgroup::Cache::kMostProcesses;

  /// `procfs`: /proc, or a copy in tests. `with_names`: reads the names of processes.
  DeviceMeter(std::string procfs, bool with_names, std::shared_ptr<WorkloadBook> book)
      : procfs_(std::move(procfs)),
        with_names_(with_names),
        book_(std::move(book)),
        unattributed_(workloads_[unattributed()]) {
    book_->open(unattributed());
    unattributed_.part = unattributed_.idle_part = 1;
  }
  ~DeviceMeter() {
    for (const auto& [id, workload] : workloads_) book_->close(id);
  }
  DeviceMeter(const DeviceMeter&) = delete;
  DeviceMeter& operator=(const DeviceMeter&) = delete;

  /// Continues the workloads, their costs and the energy counter of an earlier process of gpumeter.
  /// `begun_at` converts the entries' times to those of Workload::begun. Call it before anything else.
  void resume(const DeviceAccount& account, const std::function<Nanoseconds(Nanoseconds)>& begun_at) {
    for (const AccountEntry& earlier : account.entries) {
      const cgroup::Attribution attribution{.kind = earlier.id.kind, .workload = earlier.id.name};
      auto& [id, workload] =
          earlier.id == all_others() ? *workloads_.try_emplace(all_others()).first : workload_of(attribution);
      workload.energy_joules += earlier.energy_joules;
      workload.idle_joules += earlier.idle_joules;
      add(workload.busy_seconds, sane(earlier.busy_counter));
      raise(workload.peak_memory, earlier.cost.peak_memory);
      workload.part = workload.idle_part = earlier.part;
      workload.last_seen = earlier.seen;
      if (&workload != &unattributed_) workload.begun = begun_at(earlier.begun);
      workload.is_measured = earlier.busy_counter.has_value();
      if (id == earlier.id) {  // otherwise there was no room for it
        workload.tally = {earlier.cost, earlier.busy_counter.value_or(0), earlier.is_present, earlier.begun};
      }
    }
    last_energy_ = account.energy_total;
  }

  /// Adds a reading of the device's counter. The first reading is unattributed; a decrease adds nothing.
  /// `now`: zero: unknown, so nothing of it is idle.
  void add_energy(double total_joules, Nanoseconds now = {}) {
    if (!std::isfinite(total_joules)) return;
    const bool is_first = !last_energy_;
    const double added = std::max(total_joules - last_energy_.value_or(0), 0.0);
    last_energy_ = total_joules;
    const Nanoseconds since = std::exchange(energy_at_, now);
    if (is_first) {
      unattributed_.energy_joules += added;
      return;
    }
    const double seconds = since > Nanoseconds{0} ? to_seconds(now - since) : 0;
    window_joules_ += added;
    window_seconds_ += seconds;
    const double idle = std::min(added, idle_power_.watts().value_or(0) * seconds);
    for (auto& [id, workload] : workloads_) {
      workload.energy_joules += (added - idle) * workload.part + idle * workload.idle_part;
      workload.idle_joules += idle * workload.idle_part;
    }
    for (auto& [id, process] : processes_) {
      process.use.energy_joules += (added - idle) * process.part + idle * process.idle_part;
    }
  }

  /// Takes the processes now on the device; reads three small files per process. `realtime`: CLOCK_REALTIME
  /// at `now`; zero: unknown. `device_busy`: the device's own counter.
  void update(Nanoseconds now, std::span<const DeviceProcess> listed, Nanoseconds realtime = {},
              std::optional<double> device_busy = {}) {
    begin_look();
    looked_at_ = realtime;
    const bool was_known = std::exchange(is_known_, true);
    if (!listed.empty() && !cgroups_) cgroups_.emplace(procfs_);
    if (cgroups_) cgroups_->begin_pass();
    for (const DeviceProcess& process : listed) account(now, claimant_of(process), process);
    note_idle(device_busy, was_known);
    divide_energy();
    note_peaks();
    forget(now);
    divide_shares(now);
  }

  /// Counts what the workloads cost, after each pass over the device, whose figures are in `device`.
  /// Throttled time goes to the workloads that hold the device. After a list of the processes, `has_looked`,
  /// the time since the last one counts as held, busy or idle.
  void count_costs(Nanoseconds now, bool has_looked, const DeviceUse& device) {
    count_throttled(device);
    if (has_looked) count_time(now, device);
  }
  /// The account of the device now.
  std::shared_ptr<const DeviceAccount> account(const DeviceUse& device,
                                               std::optional<double> energy_total) const {
    auto account = std::make_shared<DeviceAccount>();
    account->uuid = device.uuid;
    account->index = device.index;
    account->energy_total = energy_total;
    account->entries.reserve(workloads_.size());
    for (const auto& [id, workload] : workloads_) {
      if (!workload.tally) continue;
      AccountEntry& entry = account->entries.emplace_back();
      entry = {id,
               workload.tally->cost,
               workload.energy_joules,
               workload.idle_joules,
               workload.busy_seconds,
               workload.part,
               workload.processes > 0,
               workload.tally->begun,
               workload.last_seen};
      entry.cost.uuid = device.uuid;
      entry.cost.index = device.index;
      entry.cost.peak_memory = workload.peak_memory;
      if (energy_total) entry.cost.joules = workload.energy_joules;
    }
    return account;
  }

  /// The device will not be read for a while: its processes are unknown until the next update(), and the time
  /// until then costs nothing.
  void interrupt() {
    begin_look();
    unattributed_.part = unattributed_.idle_part = 1;
    window_busy_.reset();
    is_known_ = false;
    ++generation_;
    counted_at_.reset();
    last_device_busy_.reset();
    last_throttled_.clear();
    for (auto& [id, workload] : workloads_) {
      if (workload.tally) workload.tally->was_present = false;
    }
  }

  /// True if there was an update() since the last interrupt().
  bool is_known() const noexcept { return is_known_; }
  /// How the energy since the last look is divided; nullopt: nobody held the device.
  std::optional<Basis> basis() const noexcept { return basis_; }
  /// nullopt: unknown. Workload::idle_joules then counts nothing.
  std::optional<double> idle_watts() const noexcept { return idle_power_.watts(); }
  /// Always contains `unattributed`.
  const std::map<WorkloadId, Workload>& workloads() const noexcept { return workloads_; }
  const std::map<ProcessId, Process>& processes() const noexcept { return processes_; }
  /// Grows when a workload or a present process is added or removed. References to both kinds of entries stay
  /// valid while it is unchanged.
  std::uint64_t generation() const noexcept { return generation_; }

  std::vector<ProcessUse> uses() const {
    std::vector<ProcessUse> uses;
    uses.reserve(processes_.size());
    for (const auto& [id, process] : processes_) uses.push_back(process.use);
    return uses;
  }

 private:
  /// nullopt if the driver's value is impossible.
  static std::optional<double> sane(std::optional<double> amount) {
    return amount && std::isfinite(*amount) && *amount >= 0 ? amount : std::nullopt;
  }
  static void add(std::optional<double>& sum, std::optional<double> amount) {
    if (amount) sum = sum.value_or(0) + *amount;
  }
  /// A workload held the device since the last count if it was there already. A new one held it for at least
  /// as long as it was busy. One that left since the last count counts as idle as before, because its last
  /// busy time is not known. The device's own busy time counts for a workload that uses the device alone if
  /// the driver does not report that of processes.
  static void count(Tally& tally, const Workload& workload, double elapsed,
                    std::optional<double> device_busy) {
    std::optional<double> busy = device_busy;
    if (workload.busy_seconds) {
      busy =
          std::max(*workload.busy_seconds - std::exchange(tally.busy_counter, *workload.busy_seconds), 0.0);
    }
    DeviceCost& cost = tally.cost;
    const bool was_present = std::exchange(tally.was_present, workload.processes > 0);
    const double held = was_present ? elapsed : std::min(elapsed, busy.value_or(0));
    const double held_before = std::exchange(cost.held_seconds, cost.held_seconds + held);
    const bool has_left = was_present && workload.processes == 0 && busy.value_or(0) == 0;
    if (has_left) {
      if (held_before > 0 && cost.idle_seconds) *cost.idle_seconds *= 1 + held / held_before;
    } else if (busy && (was_present || workload.processes > 0)) {
      add(cost.busy_seconds, *busy);
      add(cost.idle_seconds, std::max(held - *busy, 0.0));
    }
  }
  static void raise(std::optional<double>& peak, std::optional<double> amount) {
    if (amount) peak = std::max(peak.value_or(0), *amount);
  }

  struct Claimant {
    WorkloadEntry* workload;
    Process* process;  // null: beyond the limit
  };

  /// The part of a divided device that no process has.
  static bool is_nobody(const DeviceProcess& listed) noexcept { return listed.pid == 0 && listed.vm.empty(); }
  void begin_look() {
    ++look_;
    basis_.reset();
    active_seconds_.reset();
    claims_.clear();
    claimants_.clear();
    for (auto& [id, workload] : workloads_) {
      workload.processes = 0;
      workload.part = workload.idle_part = 0;
      workload.memory_bytes.reset();
    }
    for (auto& [id, process] : processes_) {
      process.use.present = false;
      process.part = process.idle_part = 0;
      process.memory_bytes.reset();
    }
  }
  /// A virtual machine is a workload by itself: the host sees no process of it on the device.
  Claimant claimant_of(const DeviceProcess& listed) {
    if (is_nobody(listed)) return {&*workloads_.find(unattributed()), nullptr};
    if (listed.vm.empty()) return claimant_of_process(listed.pid);
    cgroup::Attribution machine;
    machine.kind = cgroup::Kind::vm;
    machine.workload = listed.vm;
    return {&workload_of(machine), nullptr};
  }
  Claimant claimant_of_process(int pid) {
    const cgroup::Process& found = cgroups_->of(pid);
    // A process that ended after it was listed keeps the attribution of the previous look.
    Process* last = found.attribution.reason == cgroup::Reason::gone ? last_of(pid) : nullptr;
    if (last != nullptr) return {last->workload, last};
    WorkloadEntry& workload = workload_of(found.attribution);
    Process* process = process_of({pid, found.start_ticks});
    if (process != nullptr) recognise(*process, found, workload);
    return {&workload, process};
  }
  Process* last_of(int pid) {
    const auto end = processes_.upper_bound({pid, std::numeric_limits<std::uint64_t>::max()});
    if (end == processes_.begin()) return nullptr;
    const auto last = std::prev(end);
    return last->first.pid == pid && last->second.look + 1 == look_ ? &last->second : nullptr;
  }
  WorkloadEntry& workload_of(const cgroup::Attribution& attribution) {
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
  Process* process_of(const ProcessId& id) {
    if (const auto found = processes_.find(id); found != processes_.end()) return &found->second;
    if (processes_.size() >= kMostProcesses) make_room();
    if (processes_.size() >= kMostProcesses) return nullptr;
    Process& process = processes_[id];
    process.use.id = id;
    if (with_names_) process.name = cgroup::name_of(procfs_, id.pid);
    return &process;
  }
  /// Processes of the previous look are kept, because the present look may still find them.
  void make_room() {
    if (full_look_ == look_) return;
    full_look_ = look_;
    std::erase_if(processes_, [this](const auto& entry) { return entry.second.look + 1 < look_; });
  }
  void recognise(Process& process, const cgroup::Process& found, WorkloadEntry& workload) {
    const std::optional<std::uint32_t> uid = cgroup::real_uid_of(procfs_, process.use.id.pid);
    const bool is_same =
        process.workload == &workload && process.use.group == found.group && process.use.uid == uid;
    if (is_same) return;
    process.workload = &workload;
    process.use.group = found.group;
    process.use.uid = uid;
    book_->note(workload.first, found.attribution, uid);
  }
  void account(Nanoseconds now, const Claimant& claimant, const DeviceProcess& listed) {
    const std::optional<double> busy = sane(listed.busy_seconds);
    const std::optional<double> memory = sane(listed.memory_bytes);
    const std::optional<double> active = sane(listed.device_seconds);
    const std::size_t processes = is_nobody(listed) ? 0 : 1;
    claims_.push_back({active ? *active : busy.value_or(0), memory.value_or(0), processes,
                       sane(listed.held_ratio).value_or(0)});
    claimants_.push_back(claimant);
    Workload& workload = claimant.workload->second;
    workload.recent.add(now, claims_.back().busy_seconds);
    add(active_seconds_, active ? active : busy);
    if (processes == 0) return;
    const Basis basis = active              ? Basis::activity
                        : busy              ? Basis::busy
                        : listed.held_ratio ? Basis::slices
                        : memory            ? Basis::memory
                                            : Basis::equal;
    basis_ = std::min(basis, basis_.value_or(basis));
    ++workload.processes;
    workload.last_seen = now;
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
  /// Activity is unknown if neither the device nor its processes report it, and at the first look, where
  /// counting begins.
  void note_idle(std::optional<double> device_busy, bool was_known) {
    const std::optional<double> last = std::exchange(window_busy_, device_busy);
    std::optional<double> active;
    if (last && device_busy) active = *device_busy - *last;
    raise(active, active_seconds_);
    if (!was_known) active.reset();
    idle_power_.note(basis_.has_value(), std::exchange(window_joules_, 0), std::exchange(window_seconds_, 0),
                     active);
  }
  void divide_energy() {
    divide_energy(&Workload::part, &Process::part, false);
    divide_energy(&Workload::idle_part, &Process::idle_part, true);
  }
  void divide_energy(double Workload::*part, double Process::*part_of_process, bool by_holding) {
    if (!divide(claims_, parts_, by_holding)) unattributed_.*part = 1;
    for (std::size_t i = 0; i < claimants_.size(); ++i) {
      claimants_[i].workload->second.*part += parts_[i];
      if (claimants_[i].process != nullptr) claimants_[i].process->*part_of_process += parts_[i];
    }
  }
  void note_peaks() noexcept {
    for (auto& [id, workload] : workloads_) raise(workload.peak_memory, workload.memory_bytes);
  }
  void divide_shares(Nanoseconds now) {
    claims_.clear();
    for (auto& [id, workload] : workloads_) {
      claims_.push_back({.busy_seconds = workload.recent.sum(now), .held_ratio = workload.idle_part});
    }
    divide(claims_, parts_);
    auto part = parts_.begin();
    for (auto& [id, workload] : workloads_) workload.share = *part++;
  }
  void count_throttled(const DeviceUse& device) {
    for (const auto& [cause, total] : device.throttled) {
      const auto [last, is_first] = last_throttled_.try_emplace(cause, total);
      const double grown = std::max(total - std::exchange(last->second, total), 0.0);
      for (auto& [id, workload] : workloads_) {
        if (workload.tally && workload.processes > 0) workload.tally->cost.throttled_seconds[cause] += grown;
      }
    }
  }
  void count_time(Nanoseconds now, const DeviceUse& device) {
    const double elapsed = counted_at_ ? to_seconds(now - *counted_at_) : 0;
    counted_at_ = now;
    const std::optional<double> last = std::exchange(last_device_busy_, device.busy_seconds);
    std::optional<double> busy;
    if (last && device.busy_seconds) busy = std::max(*device.busy_seconds - *last, 0.0);
    const auto held =
        std::ranges::count_if(workloads_, [](const auto& entry) { return entry.second.processes > 0; });
    for (auto& [id, workload] : workloads_) {
      if (!workload.tally) workload.tally = {.begun = now};
      const bool is_alone = held == 1 && workload.processes > 0;
      count(*workload.tally, workload, elapsed, is_alone ? busy : std::nullopt);
    }
  }
  void forget(Nanoseconds now) {
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

  const std::string procfs_;
  const bool with_names_;
  const std::shared_ptr<WorkloadBook> book_;
  std::optional<cgroup::Cache> cgroups_;  // created with the first process, because most devices have none
  std::map<WorkloadId, Workload> workloads_;
  Workload& unattributed_;
  std::size_t named_ = 0;  // number of workloads_ that count towards the limit
  std::map<ProcessId, Process> processes_;
  std::optional<double> last_energy_;
  Nanoseconds energy_at_{};  // of the last reading; zero: unknown
  IdlePower idle_power_;
  // Of the window since the last look.
  double window_joules_ = 0;
  double window_seconds_ = 0;
  std::optional<double> window_busy_;  // the device's counter at its start
  std::optional<Basis> basis_;
  std::optional<double> active_seconds_;  // of all claims
  bool is_known_ = false;
  std::uint64_t generation_ = 0;
  std::uint64_t look_ = 1;
  std::uint64_t full_look_ = 0;  // the last look that could not make room
  Nanoseconds looked_at_{};      // CLOCK_REALTIME of the present look; zero: unknown
  // Of the last count of costs.
  std::optional<Nanoseconds> counted_at_;
  std::optional<double> last_device_busy_;
  std::map<std::string, double> last_throttled_;
  // State of the present look, in the list's order; members, to reuse their memory.
  std::vector<Claim> claims_;
  std::vector<Claimant> claimants_;
  std::vector<double> parts_;
};

}  // namespace gpumeter::workloads
