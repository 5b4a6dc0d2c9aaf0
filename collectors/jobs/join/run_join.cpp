#include "collectors/jobs/join/run_join.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/records.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::jobs {
namespace {

void add(std::vector<RunName>& runs, const RunName& run) {
  if (std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
}

// 0: the start time could not be read when the message arrived or when the device was read.
bool same_start(std::uint64_t one, std::uint64_t other) noexcept {
  return one == other || one == 0 || other == 0;
}

}  // namespace

void RunOwners::begin_pass(const RunList& jobs) {
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

const RunOwners::Owners& RunOwners::of(const workloads::ProcessUse& use) {
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

void RunOwners::end_pass() {
  std::erase_if(decisions_, [](const auto& entry) { return !entry.second.asked_for; });
}

RunOwners::Runs RunOwners::reported_by(int pid, std::uint64_t start_ticks) const {
  Runs runs;
  const auto [begin, end] = reporters_.equal_range(pid);
  for (auto reporter = begin; reporter != end; ++reporter) {
    if (same_start(reporter->second->id.start_time, start_ticks)) add(runs, reporter->second->run);
  }
  return runs;
}

RunOwners::Runs RunOwners::of_kin(const workloads::ProcessUse& use) {
  for (const int ancestor : kin_.ancestors_of(use.id.pid)) {
    if (Runs runs = reported_by(ancestor, 0); !runs.empty()) return runs;
  }
  const auto found = index().by_ancestor.find(use.id.pid);
  return found == index().by_ancestor.end() ? Runs() : found->second;
}

RunOwners::Runs RunOwners::of_workload(const workloads::ProcessUse& use) {
  const std::string workload = workload_of_one_purpose(use.group);
  if (!use.uid || workload.empty()) return {};
  const auto found = index().by_workload.find({*use.uid, workload});
  return found == index().by_workload.end() ? Runs() : found->second;
}

const RunOwners::Index& RunOwners::index() {
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

namespace {

constexpr double increase(double from, double to) noexcept { return std::max(0.0, to - from); }

}  // namespace

void RunJoin::update(const RunList& jobs, const DeviceUses& devices) {
  owners_.begin_pass(jobs);
  runs_.clear();
  for (auto& [run, totals] : totals_) totals.gpus.clear();
  for (const auto& device : devices) account(*device);
  owners_.end_pass();
  note_gaps(devices);
  forget(jobs);
}

// When a device returns, the energy counters of its processes continue. Their busy time in the gap is
// unknown.
void RunJoin::note_gaps(const DeviceUses& devices) {
  for (auto& [uuid, reading] : readings_) {
    const auto same = [&](const auto& device) { return device->uuid == uuid; };
    if (std::ranges::any_of(devices, same)) continue;
    reading.listed_at.reset();
    reading.clock_lost_seconds.reset();
    reading.throttled.clear();
  }
}

/// The runs that have a process on the device that is theirs without a guess. Another process there is no
/// rank of theirs, which would have a GPU of its own, but a program beside them.
std::set<RunName> RunJoin::proven_on(const workloads::DeviceUse& device) {
  std::set<RunName> proven;
  for (const workloads::ProcessUse& use : device.processes) {
    const auto& [runs, is_guess] = owners_.of(use);
    if (!is_guess) proven.insert(runs.begin(), runs.end());
  }
  return proven;
}

void RunJoin::account(const workloads::DeviceUse& device) {
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

void RunJoin::note_gpu(const workloads::DeviceUse& device, const RunName& run, bool is_guess) {
  Gpu& gpu = totals_[run].gpus[device.uuid];
  gpu.index = device.index;
  gpu.is_guess = gpu.is_guess && is_guess;
}

void RunJoin::take_energy(const workloads::DeviceUse& device, const std::vector<RunName>& runs,
                          double joules) {
  if (!device.has_energy) return;
  for (const RunName& run : runs) {
    std::optional<double>& energy = totals_[run].energy_joules;
    energy = energy.value_or(0) + joules / static_cast<double>(runs.size());
  }
}

// If the driver reports no busy time of processes, the device's own counts for a run that uses the device
// alone.
void RunJoin::take_idle(const workloads::DeviceUse& device, const std::map<RunName, Part>& parts,
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

// The time counts in full for each run that holds the device: each of them waits.
void RunJoin::take_throttled(const workloads::DeviceUse& device, const std::map<RunName, Part>& parts,
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

void RunJoin::forget(const RunList& jobs) {
  const std::set<RunName> known(jobs.runs.begin(), jobs.runs.end());
  std::erase_if(totals_, [&](const auto& entry) { return !known.contains(entry.first); });
}

std::string RunJoin::saved() const {
  RecordWriter out;
  for (const auto& [run, totals] : totals_) {
    out.begin("joined").text(run.user).text(run.run).number(totals.energy_joules).number(totals.idle_seconds);
    out.number(totals.clock_lost_seconds);
    for (const auto& [cause, seconds] : totals.throttled_seconds) out.text(cause).number(seconds);
  }
  return out.take();
}

Result<Done> RunJoin::restore(std::string_view section) {
  const auto is_amount = [](std::optional<double> value) {
    return !value || (std::isfinite(*value) && *value >= 0);
  };
  std::map<RunName, Totals> totals;
  RecordReader in(section);
  while (in.next()) {
    if (in.kind() != "joined") in.fail();
    RunName name;
    name.user = in.text();
    name.run = in.text();
    Totals& total = totals[name];
    total.energy_joules = in.optional_number();
    total.idle_seconds = in.optional_number();
    if (in.has_field()) total.clock_lost_seconds = in.optional_number();
    while (in.has_field() && !in.failed()) {
      const std::string cause = in.text();
      total.throttled_seconds[cause] = in.number();
      if (!is_amount(total.throttled_seconds[cause])) in.fail();
    }
    for (const auto& amount : {total.energy_joules, total.idle_seconds, total.clock_lost_seconds}) {
      if (!is_amount(amount)) in.fail();
    }
  }
  if (in.failed()) return Error("the energy of runs, line " + std::to_string(in.line()));
  totals_ = std::move(totals);
  return Done{};
}

void RunJoin::write(SeriesList& out) const {
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

}  // namespace gpumeter::jobs
