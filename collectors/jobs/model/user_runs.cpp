#include "collectors/jobs/model/user_runs.hpp"

#include <algorithm>
#include <utility>

#include "collectors/jobs/wire/label_text.hpp"

namespace gpumeter::jobs {

std::pair<Run*, Member*> UserRuns::find(const SenderId& id, std::string_view name) noexcept {
  const auto [begin, end] = runs_.equal_range(name);
  for (auto run = begin; run != end; ++run) {
    if (Member* const member = run->second.progress.find(id)) return {&run->second, member};
  }
  return {};
}

Run* UserRuns::to_join(const Workload& workload, std::string_view name, const Moment& now,
                       const IsGone& is_gone) {
  const auto [begin, end] = runs_.equal_range(name);
  auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.workload == workload; });
  if (found == end) {
    found = std::find_if(begin, end, [&](const auto& entry) {
      return !workload.is_known() || !entry.second.workload.is_known();
    });
  }
  Run* const run = found != end ? &found->second : abandoned(workload, name, now, is_gone);
  if (run == nullptr) return nullptr;
  run->remove(is_gone, now, true);
  if (workload.is_known()) run->workload = workload;
  return run;
}

/// A requeued Slurm job keeps its number, so a job with another number is another task of the array. This
/// call removes ended processes itself, because otherwise only the next tick would. Each line that finds no
/// room repeats the call, so the number of checks is limited.
Run* UserRuns::abandoned(const Workload& workload, std::string_view name, const Moment& now,
                         const IsGone& is_gone) {
  constexpr int kMostAsked = 16;
  const auto [begin, end] = runs_.equal_range(name);
  int asked = 0;
  const auto found = std::find_if(begin, end, [&](auto& entry) {
    Run& run = entry.second;
    const bool are_jobs = run.workload.kind == workload.kind && workload.kind == cgroup::Kind::slurm_job;
    if (are_jobs) return false;
    if (!run.progress.members().empty() && ++asked > kMostAsked) return false;
    run.remove(is_gone, now, true);
    return run.is_abandoned();
  });
  return found == end ? nullptr : &found->second;
}

Run& UserRuns::add(const Workload& workload, std::string_view name, const Moment& at, Source& source,
                   std::string_view user) {
  std::string whole(name);
  std::string label = whole;
  if (workload.is_known() && is_taken(label)) {
    whole += '@' + workload.name;
    label = run_name_text(whole);
  }
  for (int copy = 2; is_taken(label); ++copy) label = run_name_text(whole + '#' + std::to_string(copy));
  const RunSeries series(source, label, user);
  Run& run = runs_.emplace(name, Run(std::move(label), series, at))->second;
  run.workload = workload;
  return run;
}

bool UserRuns::is_taken(const std::string& label) const noexcept {
  return label == kOther ||
         std::ranges::any_of(runs_, [&](const auto& entry) { return entry.second.label() == label; });
}

UserRuns::Place UserRuns::least_used() noexcept {
  return std::ranges::min_element(runs_, {}, [](const auto& entry) {
    return std::pair(!entry.second.progress.members().empty(), entry.second.last_heard());
  });
}

void UserRuns::expire(const Moment& now, Nanoseconds retention) {
  std::erase_if(runs_, [&](const auto& entry) { return entry.second.is_expired(now, retention); });
}

}  // namespace gpumeter::jobs
