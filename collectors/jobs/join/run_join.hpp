#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/records.hpp"
#include "base/result.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::jobs {

/// Decides which runs a process on a GPU works for. The process need not report the run itself: a server
/// reports while its engine computes, and a launcher reports while its workers train. The first rule that
/// applies decides:
///
/// 1. the process reports the run itself;
/// 2. the nearest of its ancestors that report, or otherwise its descendants that report;
/// 3. processes of its user and in its workload (Slurm job, pod, unit) report one run, and no other.
///
/// The first two rules use data from the kernel. Rule 3 is a guess for the ranks of a run if only rank 0
/// reports it. A common cgroup alone proves nothing: a server may run beside a training in one container.
///
/// A decision holds until another rule decides otherwise, so that the last figures of an ended process count
/// for its run. If the process still runs, as a notebook does, the decision ends in the second pass after the
/// end of the run. A guess also ends when a second run reports in the workload. One thread.
class RunOwners {
 public:
  struct Owners {
    std::vector<RunName> runs;  ///< sorted; several if the process reports several runs
    bool is_guess = false;      ///< decided by rule 3
  };

  explicit RunOwners(ProcessKin& kin) : kin_(kin) {}

  /// Takes the processes that report now. Call about once a second; `jobs` must stay valid until end_pass().
  void begin_pass(const RunList& jobs) {
    reporters_.clear();
    index_.reset();
    for (const RunProcess& process : jobs.processes) {
      if (process.id.pid > 0) reporters_.emplace(process.id.pid, &process);
    }
    const std::set<RunName> ended(jobs.ended.begin(), jobs.ended.end());
    const auto has_ended = [&](const RunName& run) { return ended.contains(run); };
    for (auto& [id, decision] : decisions_) {
      decision.asked_for = false;
      decision.ended = std::ranges::all_of(decision.owners.runs, has_ended) ? decision.ended + 1 : 0;
    }
  }

  /// Returns the owners of a process on a device. Each of them has an equal share of it.
  const Owners& of(const workloads::ProcessUse& use) {
    Decision& decision = decisions_[use.id];
    Owners& owners = decision.owners;
    decision.asked_for = true;
    if (use.present && decision.ended > 1) owners = {};
    Runs runs = reported_by(use.id.pid, use.id.start_ticks);
    if (runs.empty() && use.present) runs = of_kin(use);
    std::ranges::sort(runs);
    if (!runs.empty()) {
      owners = {std::move(runs), false};
    } else if (use.present && (owners.is_guess || owners.runs.empty())) {
      Runs guess = of_workload(use);
      if (guess.size() > 1) owners = {};
      if (guess.size() == 1) owners = {std::move(guess), true};
    }
    return owners;
  }

  /// Removes the processes that this pass did not ask for.
  void end_pass() {
    std::erase_if(decisions_, [](const auto& entry) { return !entry.second.asked_for; });
  }

 private:
  static void add(std::vector<RunName>& runs, const RunName& run) {
    if (std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
  }
  /// 0: the start time could not be read when the message arrived or when the device was read.
  static bool same_start(std::uint64_t one, std::uint64_t other) noexcept {
    return one == other || one == 0 || other == 0;
  }

  struct Decision {
    Owners owners;
    int ended = 0;  ///< passes since the last owner ended; the first still measures mostly its energy
    bool asked_for = false;
  };
  using Workload = std::pair<std::uint32_t, std::string>;  // of a user

  using Runs = std::vector<RunName>;
  /// The runs that processes report, by the ancestors and workloads of these processes.
  struct Index {
    std::map<int, Runs> by_ancestor;
    std::map<Workload, Runs> by_workload;
  };

  Runs reported_by(int pid, std::uint64_t start_ticks) const {
    Runs runs;
    const auto [begin, end] = reporters_.equal_range(pid);
    for (auto reporter = begin; reporter != end; ++reporter) {
      if (same_start(reporter->second->id.start_time, start_ticks)) add(runs, reporter->second->run);
    }
    return runs;
  }
  Runs of_kin(const workloads::ProcessUse& use) {
    for (const int ancestor : kin_.ancestors_of(use.id.pid)) {
      if (Runs runs = reported_by(ancestor, 0); !runs.empty()) return runs;
    }
    const auto found = index().by_ancestor.find(use.id.pid);
    return found == index().by_ancestor.end() ? Runs() : found->second;
  }
  Runs of_workload(const workloads::ProcessUse& use) {
    const std::string workload = workload_of_one_purpose(use.group);
    if (!use.uid || workload.empty()) return {};
    const auto found = index().by_workload.find({*use.uid, workload});
    return found == index().by_workload.end() ? Runs() : found->second;
  }
  const Index& index() {
    if (index_) return *index_;
    index_.emplace();
    for (const auto& [pid, reporter] : reporters_) {
      const ProcessKin::Facts& facts = kin_.of(pid);
      const std::uint32_t uid = reporter->id.uid;
      if (!facts.workload.empty()) add(index_->by_workload[{uid, facts.workload}], reporter->run);
      for (const int ancestor : kin_.ancestors_of(pid)) add(index_->by_ancestor[ancestor], reporter->run);
    }
    return *index_;
  }

  ProcessKin& kin_;
  std::multimap<int, const RunProcess*> reporters_;
  std::optional<Index> index_;  ///< nullopt until this pass needs it
  std::map<workloads::ProcessId, Decision> decisions_;
};

/// The processes on each device and their use of it.
using DeviceUses = std::vector<std::shared_ptr<const workloads::DeviceUse>>;

/// Computes each run's share of the GPUs: its energy, the time that it holds a GPU without using it, the time
/// that it loses because its GPUs are throttled, and the list of its GPUs. Joins by processes (RunOwners), so
/// the job need not report its GPUs. One thread.
class RunJoin {
 public:
  /// The owner calls ProcessKin::begin_pass() before each update().
  explicit RunJoin(ProcessKin& kin) : owners_(kin) {}

  /// Accounts for the use since the last call. Call about once a second.
  void update(const RunList& jobs, const DeviceUses& devices) {
    owners_.begin_pass(jobs);
    runs_.clear();
    for (auto& [run, totals] : totals_) totals.gpus.clear();
    for (const auto& device : devices) account(*device);
    owners_.end_pass();
    note_gaps(devices);
    forget(jobs);
  }

  /// Adds ml_energy_joules_total, ml_gpu_idle_allocated_seconds_total, ml_throttled_seconds_total,
  /// ml_clock_lost_seconds_total and ml_run_gpu_info for the runs that have or had a GPU.
  void write(SeriesList& out) const {
    for (const auto& [run, totals] : totals_) {
      const Labels labels{{"run", run.run}, {"user", run.user}};
      if (totals.energy_joules) out.add(catalog::ml_energy, labels, *totals.energy_joules);
      if (totals.idle_seconds) out.add(catalog::ml_gpu_idle_allocated_seconds, labels, *totals.idle_seconds);
      for (const auto& [cause, seconds] : totals.throttled_seconds) {
        out.add(catalog::ml_throttled_seconds, labels.with({{"cause", cause}}), seconds);
      }
      if (totals.clock_lost_seconds) {
        out.add(catalog::ml_clock_lost_seconds, labels, *totals.clock_lost_seconds);
      }
      for (const auto& [uuid, gpu] : totals.gpus) {
        out.add(catalog::ml_run_gpu_info,
                labels.with({{"gpu", std::to_string(gpu.index)},
                             {"uuid", uuid},
                             {"source", gpu.is_guess ? "workload" : "process"}}),
                1);
      }
    }
  }

  /// The runs of the processes that were on a device at the last update. The caller may move them away.
  std::map<workloads::ProcessId, RunName> take_runs() { return std::exchange(runs_, {}); }

  /// The section of the state file: energy, idle time and lost time of each run.
  std::string saved() const {
    RecordWriter out;
    for (const auto& [run, totals] : totals_) {
      out.begin("joined")(run.user, run.run, totals.energy_joules, totals.idle_seconds,
                          totals.clock_lost_seconds);
      out.to_end(totals.throttled_seconds);
    }
    return out.take();
  }
  Result<Done> restore(std::string_view section) {
    std::map<RunName, Totals> totals;
    RecordReader in(section);
    while (in.next()) {
      RunName name;
      in.check(in.kind() == "joined")(name.user, name.run);
      Totals& total = totals[name];
      in.amounts(total.energy_joules, total.idle_seconds);
      if (in.has_field()) in.amounts(total.clock_lost_seconds);
      in.to_end(total.throttled_seconds);
    }
    if (in.failed()) return Error("the energy of runs, line " + std::to_string(in.line()));
    totals_ = std::move(totals);
    return Done{};
  }

 private:
  static constexpr double increase(double from, double to) noexcept { return std::max(0.0, to - from); }

  struct Gpu {
    unsigned index = 0;
    bool is_guess = true;  ///< rule 3 of RunOwners decided for all processes of the run on this GPU
  };
  struct Totals {
    std::optional<double> energy_joules;
    std::optional<double> idle_seconds;
    std::optional<double> clock_lost_seconds;
    std::map<std::string, double> throttled_seconds;  ///< by cause
    std::map<std::string, Gpu> gpus;                  ///< current GPUs, by uuid
  };
  struct Reading {
    double energy_joules = 0;
    double busy_seconds = 0;
  };
  /// Busy times are from the last list of processes; energy is read more often.
  struct DeviceReading {
    std::optional<Nanoseconds> listed_at;  ///< nullopt: the device was not read at the last update
    double busy_seconds = 0;
    std::optional<double> clock_lost_seconds;
    std::map<std::string, double> throttled;  ///< seconds by cause
    std::map<workloads::ProcessId, Reading> processes;
  };
  /// A run's processes on one device since the last reading.
  struct Part {
    std::optional<double> busy_seconds = 0;  ///< nullopt: unknown for one of the processes
    std::size_t present = 0;
  };

  /// When a device returns, the energy counters of its processes continue. Their busy time in the gap is
  /// unknown.
  void note_gaps(const DeviceUses& devices) {
    for (auto& [uuid, reading] : readings_) {
      const auto same = [&](const auto& device) { return device->uuid == uuid; };
      if (std::ranges::any_of(devices, same)) continue;
      reading.listed_at.reset();
      reading.clock_lost_seconds.reset();
      reading.throttled.clear();
    }
  }
  void account(const workloads::DeviceUse& device) {
    DeviceReading& reading = readings_[device.uuid];
    const DeviceReading last = std::exchange(reading, {});
    reading.listed_at = device.listed_at;
    const bool is_listed_anew = device.listed_at != last.listed_at;
    reading.busy_seconds = is_listed_anew ? device.busy_seconds.value_or(0) : last.busy_seconds;
    reading.clock_lost_seconds = device.clock_lost_seconds;
    reading.throttled.insert(device.throttled.begin(), device.throttled.end());
    std::map<RunName, Part> parts;
    const std::set<RunName> proven = proven_on(device);
    for (const workloads::ProcessUse& use : device.processes) {
      const auto before = last.processes.find(use.id);
      const Reading past = before == last.processes.end() ? Reading{} : before->second;
      reading.processes[use.id] = {use.energy_joules,
                                   is_listed_anew ? use.busy_seconds.value_or(0) : past.busy_seconds};
      const auto& [runs, is_guess] = owners_.of(use);
      if (is_guess && proven.contains(runs.front())) continue;
      if (use.present && !runs.empty()) runs_.try_emplace(use.id, runs.front());
      take_energy(device, runs, increase(past.energy_joules, use.energy_joules));
      for (const RunName& run : runs) {
        Part& part = parts[run];
        if (use.present) ++part.present;
        if (use.present) note_gpu(device, run, is_guess);
        if (!use.busy_seconds) part.busy_seconds.reset();
        if (part.busy_seconds) *part.busy_seconds += increase(past.busy_seconds, *use.busy_seconds);
      }
    }
    take_throttled(device, parts, last);
    if (is_listed_anew && last.listed_at) take_idle(device, parts, last);
  }
  /// The runs that have a process on the device that is theirs without a guess. Another process there is no
  /// rank of theirs, which would have a GPU of its own, but a program beside them.
  std::set<RunName> proven_on(const workloads::DeviceUse& device) {
    std::set<RunName> proven;
    for (const workloads::ProcessUse& use : device.processes) {
      const auto& [runs, is_guess] = owners_.of(use);
      if (!is_guess) proven.insert(runs.begin(), runs.end());
    }
    return proven;
  }
  void note_gpu(const workloads::DeviceUse& device, const RunName& run, bool is_guess) {
    Gpu& gpu = totals_[run].gpus[device.uuid];
    gpu.index = device.index;
    gpu.is_guess = gpu.is_guess && is_guess;
  }
  void take_energy(const workloads::DeviceUse& device, const std::vector<RunName>& runs, double joules) {
    if (!device.has_energy) return;
    for (const RunName& run : runs) {
      std::optional<double>& energy = totals_[run].energy_joules;
      energy = energy.value_or(0) + joules / static_cast<double>(runs.size());
    }
  }
  /// If the driver reports no busy time of processes, the device's own counts for a run that uses the device
  /// alone.
  void take_idle(const workloads::DeviceUse& device, const std::map<RunName, Part>& parts,
                 const DeviceReading& last) {
    const double elapsed = to_seconds(device.listed_at - *last.listed_at);
    const auto present = std::ranges::count_if(device.processes, &workloads::ProcessUse::present);
    for (const auto& [run, part] : parts) {
      if (part.present == 0) continue;
      std::optional<double> busy = part.busy_seconds;
      if (!busy && device.busy_seconds && std::cmp_equal(part.present, present)) {
        busy = increase(last.busy_seconds, *device.busy_seconds);
      }
      if (!busy) continue;
      std::optional<double>& idle = totals_[run].idle_seconds;
      idle = idle.value_or(0) + std::max(0.0, elapsed - *busy);
    }
  }
  /// The time counts in full for each run that holds the device: each of them waits.
  void take_throttled(const workloads::DeviceUse& device, const std::map<RunName, Part>& parts,
                      const DeviceReading& last) {
    for (const auto& [run, part] : parts) {
      if (part.present == 0) continue;
      Totals& totals = totals_[run];
      for (const auto& [cause, seconds] : device.throttled) {
        const auto before = last.throttled.find(cause);
        totals.throttled_seconds[cause] +=
            before == last.throttled.end() ? 0 : increase(before->second, seconds);
      }
      if (!device.clock_lost_seconds) continue;
      const double before = last.clock_lost_seconds.value_or(*device.clock_lost_seconds);
      totals.clock_lost_seconds =
          totals.clock_lost_seconds.value_or(0) + increase(before, *device.clock_lost_seconds);
    }
  }
  void forget(const RunList& jobs) {
    const std::set<RunName> known(jobs.runs.begin(), jobs.runs.end());
    std::erase_if(totals_, [&](const auto& entry) { return !known.contains(entry.first); });
  }

  RunOwners owners_;
  std::map<std::string, DeviceReading, std::less<>> readings_;  ///< by uuid
  std::map<RunName, Totals> totals_;
  std::map<workloads::ProcessId, RunName> runs_;  ///< of the last update
};

}  // namespace gpumeter::jobs
