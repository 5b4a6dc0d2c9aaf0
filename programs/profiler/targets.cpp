#include "programs/profiler/targets.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::profiles {

namespace {

constexpr const char* kHowTo =
    "start it with KINETO_USE_DAEMON=1 (PyTorch), or with a profiler service on one of "
    "profiles.profiler_ports (JAX, TensorFlow, PyTorch's debug server) or profiles.worker_sockets (the "
    "latter)";

}  // namespace

std::vector<int> Targets::numbers_of(int pid) const {
  return numbers_in_namespaces(sysfs::read_text(proc::path(sources_.procfs, pid, "status")));
}

bool Targets::is_alive(int pid) const {
  return proc::is_alive(sysfs::read_text(proc::path(sources_.procfs, pid, "stat")));
}

bool Targets::is_admitted(std::uint32_t uid) const {
  if (sources_.users.empty()) return true;
  const std::uint32_t owner = sources_.owner_of(uid);
  const std::string name = sources_.name_of(owner);
  return std::ranges::any_of(sources_.users, [&](const std::string& user) {
    return user == name || user == std::to_string(owner) || user == std::to_string(uid);
  });
}

std::vector<Targets::Candidate> Targets::candidates(const std::function<bool(const Process&)>& is_wanted,
                                                    const std::shared_ptr<const jobs::RunList>& runs,
                                                    Nanoseconds now) {
  kin_.begin_pass(now);
  owners_.begin_pass(*runs);
  std::vector<Candidate> found;
  std::set<int> seen;
  for (Door* const door : doors_) {
    for (const Process& process : door->processes()) {
      if (!is_wanted(process) || !is_admitted(process.uid) || !seen.insert(process.pid).second) continue;
      found.push_back(candidate(process, *door, *runs));
    }
  }
  owners_.end_pass();
  return found;
}

Targets::Candidate Targets::candidate(const Process& process, Door& door, const jobs::RunList& jobs) {
  const std::string stat = sysfs::read_text(proc::path(sources_.procfs, process.pid, "stat"));
  workloads::ProcessUse use;
  use.id = {process.pid, proc::start_ticks(stat).value_or(0)};
  use.uid = process.uid;
  use.group = kin_.of(process.pid).group;
  use.present = true;
  std::vector<RunName> runs = owners_.of(use).runs;
  const std::string user = sources_.name_of(sources_.owner_of(process.uid));
  std::erase_if(runs, [&](const RunName& run) { return run.user != user; });  // of a parent, such as sudo
  const bool reports = std::ranges::any_of(
      jobs.processes, [&](const jobs::RunProcess& reporter) { return reporter.id.pid == process.pid; });
  return {process, &door, numbers_of(process.pid), std::move(runs), reports};
}

Result<Targets::Found> Targets::find(const Asked& asked, const Asker& asker,
                                     const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now) {
  if (!asker.numbers) return asker.numbers.error();
  const std::size_t depth = asker.numbers->size();
  kin_.begin_pass(now);
  const std::string group = kin_.of(asker.pid).group;
  if (depth > 1 && group.empty()) {
    return Error(
        "gpumeter-profiler cannot read the cgroup of the process that connected, in whose container it would "
        "look");
  }
  const std::uint32_t owner = sources_.owner_of(asker.uid);
  const auto may_ask = [&](const Process& process) {
    if (depth > 1 && kin_.of(process.pid).group != group) return false;
    return asker.uid == 0 || sources_.owner_of(process.uid) == owner;
  };
  const std::vector<Candidate> from = candidates(may_ask, runs, now);
  return asked.pid ? of_pid(*asked.pid, depth, from) : of_run(asked.run, from);
}

Member Targets::member_of(const Candidate& candidate) {
  const int pid = candidate.process.pid;
  return {candidate.door, pid, candidate.numbers.empty() ? pid : candidate.numbers.back()};
}

// `depth`: the number of pid namespaces that the client is in.
Result<Targets::Found> Targets::of_pid(int pid, std::size_t depth, const std::vector<Candidate>& from) const {
  std::vector<const Candidate*> matching;
  for (const Candidate& each : from) {
    if (depth > 1 && each.numbers.size() < depth) continue;  // the client does not see it
    const int number = depth == 1 ? each.process.pid : each.numbers[depth - 1];
    if (number == pid) matching.push_back(&each);
  }
  if (matching.size() > 1) return Error("several processes have the number; name a run");
  if (matching.empty()) {
    return Error(std::string("no process of yours with this number can be profiled; ") + kHowTo);
  }
  const Candidate& found = *matching.front();
  RunName run{sources_.name_of(sources_.owner_of(found.process.uid)), "_other"};
  if (!found.runs.empty()) run = found.runs.front();
  return Found{std::move(run), {member_of(found)}};
}

std::vector<const Targets::Candidate*> Targets::of_run(const std::function<bool(const RunName&)>& is_it,
                                                       const std::vector<Candidate>& from) {
  std::vector<const Candidate*> reporters;
  std::vector<const Candidate*> relatives;
  for (const Candidate& each : from) {
    if (std::ranges::any_of(each.runs, is_it)) (each.reports ? reporters : relatives).push_back(&each);
  }
  return reporters.empty() ? relatives : reporters;
}

Result<Targets::Found> Targets::of_run(const std::string& run, const std::vector<Candidate>& from) const {
  Found found;
  for (const Candidate* each : of_run([&](const RunName& name) { return name.run == run; }, from)) {
    const RunName& name = *std::ranges::find(each->runs, run, &RunName::run);
    if (!found.members.empty() && found.run != name) return Error("several users have a run of this name");
    found.run = name;
    if (found.members.size() < kMostMembers) found.members.push_back(member_of(*each));
  }
  if (found.members.empty()) {
    return Error(std::string("no process of yours in this run can be profiled; ") + kHowTo);
  }
  return found;
}

Targets::Found Targets::first_of(const RunName& run, const std::set<int>& preferred,
                                 const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now) {
  std::vector<Candidate> from = candidates([](const Process&) { return true; }, runs, now);
  std::erase_if(from, [](const Candidate& each) { return !each.door->serves_conditions(each.process.pid); });
  const std::vector<const Candidate*> of_it = of_run([&](const RunName& name) { return name == run; }, from);
  if (of_it.empty()) return {run, {}};
  const auto found = std::ranges::find_if(
      of_it, [&](const Candidate* each) { return preferred.contains(each->process.pid); });
  return {run, {member_of(found == of_it.end() ? *of_it.front() : **found)}};
}

}  // namespace gpumeter::profiles
