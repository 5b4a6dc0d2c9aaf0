// The part of the thread "profiles" that takes profiles by condition.
#include <set>
#include <utility>

#include "collectors/profiles/asking.hpp"
#include "daemon/profiles/core.hpp"

namespace gpumeter {

using profiles::Status;

void Profiler::Core::judge() {
  std::optional<std::vector<profiles::Finding>> findings;
  {
    const MutexLock lock(mutex_);
    findings = std::exchange(findings_, std::nullopt);
  }
  if (!findings) return;
  std::set<std::pair<profiles::RunName, std::string>> held;
  for (const profiles::Finding& finding : *findings) {
    held.emplace(finding.run, finding.condition);
    act_on(finding, !held_.contains({finding.run, finding.condition}));
  }
  held_ = std::move(held);
}

std::set<int> Profiler::Core::processes_on(const std::string& gpu) const {
  std::set<int> pids;
  if (gpu.empty()) return pids;
  for (const auto& device : parts_.uses()) {
    if (device->uuid != gpu) continue;
    for (const workloads::ProcessUse& use : device->processes) {
      if (use.present) pids.insert(use.id.pid);
    }
  }
  return pids;
}

// The job writes no file, and no client is there that would.
void Profiler::Core::fetch(const profiles::Member& member, const profiles::Order& order) {
  fetches_.start(member.pid,
                 {debug_.connection(member.pid), debug_.socket(member.pid),
                  profiles::debug_request(order.extent.duration), profiles::file_of(order, member),
                  debug_.owner(member.pid), order.extent.duration + profiles::Desk::kWrite});
}

// A condition that holds on is refused, counted and logged once.
void Profiler::Core::act_on(const profiles::Finding& finding, bool is_new) {
  const Targets::Found found = targets_.first_of(finding.run, processes_on(finding.gpu), runs(), now());
  if (found.members.empty()) return;
  std::optional<std::string> refusal = parts_.budget->refusal(finding.run);
  if (desk_.has_automatic()) refusal = "a profile by condition is under way";
  const profiles::Member& member = found.members.front();
  const bool is_fetched = member.door == &debug_;
  const std::string& folder = is_fetched ? settings_.trace_folder : settings_.folder;
  const Result<std::string> path = profiles::path_in(folder, finding.run.run);
  if (!path) refusal = path.error().message();
  if (!refusal) {
    const profiles::Order order{*path, {std::nullopt, settings_.duration}};
    const Result<Number> begun =
        begin({finding.run, finding.condition, finding.reason, order, found.members});
    if (begun && is_fetched) fetch(member, order);
    if (begun) return parts_.budget->spend(finding.run);
    refusal = begun.error().message();
  }
  if (!is_new) return;
  ledger_.count(finding.run, finding.condition, Status::refused, parts_.clock.boottime(),
                parts_.clock.realtime());
  parts_.log.info("a condition holds, and takes no profile", {{"run", finding.run.run},
                                                              {"user", finding.run.user},
                                                              {"trigger", finding.condition},
                                                              {"reason", finding.reason},
                                                              {"error", *refusal}});
}

}  // namespace gpumeter
