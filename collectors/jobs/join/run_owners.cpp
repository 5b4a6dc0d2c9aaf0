#include "collectors/jobs/join/run_owners.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

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

}  // namespace gpumeter::jobs
