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

// 0 is a start time that could not be read, by the time the message came or the device was looked at.
bool same_start(std::uint64_t one, std::uint64_t other) noexcept {
  return one == other || one == 0 || other == 0;
}

}  // namespace

void RunOwners::begin_pass(const JobSnapshot& jobs) {
  tellers_.clear();
  workloads_.reset();
  for (const RunProcess& process : jobs.processes) {
    if (process.id.pid > 0) tellers_.emplace(process.id.pid, &process);
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
  std::vector<RunName> runs = told_by(use.id.pid, use.id.start_ticks);
  if (runs.empty() && use.present) runs = of_group(use);
  if (runs.empty() && use.present) runs = of_kin(use);
  std::ranges::sort(runs);
  if (!runs.empty()) {
    owners = {std::move(runs), false};
  } else if (use.present && (owners.is_guess || owners.runs.empty())) {
    const std::vector<RunName>& guess = of_workload(use);
    if (guess.size() == 1) owners = {guess, true};
    if (guess.size() > 1) owners = {};
  }
  return owners;
}

void RunOwners::end_pass() {
  std::erase_if(decisions_, [](const auto& entry) { return !entry.second.asked_for; });
}

std::vector<RunName> RunOwners::told_by(int pid, std::uint64_t start_ticks) const {
  std::vector<RunName> runs;
  const auto [begin, end] = tellers_.equal_range(pid);
  for (auto teller = begin; teller != end; ++teller) {
    if (same_start(teller->second->id.start_time, start_ticks)) add(runs, teller->second->run);
  }
  return runs;
}

std::vector<RunName> RunOwners::of_group(const workloads::ProcessUse& use) {
  std::vector<RunName> runs;
  for (const auto& [pid, teller] : tellers_) {
    const bool same_user = !use.uid || *use.uid == teller->id.uid;
    const std::string& group = kin_.of(pid).group;
    if (same_user && !group.empty() && group == use.group) add(runs, teller->run);
  }
  return runs.size() == 1 ? runs : std::vector<RunName>();
}

std::vector<RunName> RunOwners::of_kin(const workloads::ProcessUse& use) {
  for (const int ancestor : kin_.ancestors_of(use.id.pid)) {
    if (std::vector<RunName> runs = told_by(ancestor, 0); !runs.empty()) return runs;
  }
  std::vector<RunName> runs;
  for (const auto& [pid, teller] : tellers_) {
    const std::vector<int> ancestors = kin_.ancestors_of(pid);
    if (std::ranges::find(ancestors, use.id.pid) != ancestors.end()) add(runs, teller->run);
  }
  return runs;
}

const std::vector<RunName>& RunOwners::of_workload(const workloads::ProcessUse& use) {
  static const std::vector<RunName> kNobody;
  const std::string workload = workload_of_one_purpose(use.group);
  if (!use.uid || workload.empty()) return kNobody;
  if (!workloads_) find_workloads();
  const auto found = workloads_->find({*use.uid, workload});
  return found == workloads_->end() ? kNobody : found->second;
}

void RunOwners::find_workloads() {
  workloads_.emplace();
  for (const auto& [pid, teller] : tellers_) {
    const std::string& workload = kin_.of(pid).workload;
    if (!workload.empty()) add((*workloads_)[{teller->id.uid, workload}], teller->run);
  }
}

}  // namespace gpumeter::jobs
