#include <algorithm>
#include <utility>

#include "collectors/jobs/model/run_model.hpp"

// What time does: processes that are gone, runs that are over, the snapshot.
namespace gpumeter::jobs {

bool RunModel::is_gone(const SenderId& id, Nanoseconds last_seen, const Moment& now) const {
  return id.pid != 0 ? !is_alive_(id) : now.elapsed - last_seen >= limits_.retention;
}

void RunModel::find_gone(const Moment& now) {
  for (auto& [uid, user] : users_) {
    for (auto& [id, process] : user.processes) process.is_gone = is_gone(id, process.last_seen, now);
  }
}

void RunModel::tick(const Moment& now, const std::function<void()>& receive_last) {
  find_gone(now);
  if (receive_last) receive_last();
  for (auto& [uid, user] : users_) {
    reap(user, now);
    expire_runs(user, now);
  }
  std::erase_if(users_, [&](const auto& entry) {
    const User& user = entry.second;
    const bool over =
        user.runs.empty() && user.processes.empty() && now.elapsed - user.last_seen >= limits_.retention;
    if (over) series_ -= user.series;  // what is left of it is `_other`'s
    return over;
  });
  if (now.elapsed - other_updated_ >= limits_.retention) other_ = Cells();
  publish(now);
}

void RunModel::reap(User& user, const Moment& now) {
  processes_ -= std::erase_if(user.processes, [](const auto& entry) { return entry.second.is_gone; });
  members_ -= std::exchange(user.members, 0);
  for (auto& [name, run] : user.runs) {
    run.remove([&](const Member& member) { return !user.processes.contains(member.id); }, now);
    run.tick(now);
    user.members += run.progress.members().size();
  }
  members_ += user.members;
}

void RunModel::expire_runs(User& user, const Moment& now) {
  std::erase_if(user.runs, [&](const auto& entry) {
    const Run& run = entry.second;
    if (!run.is_expired(now, limits_.retention)) return false;
    for (const Member& member : run.progress.members()) user.processes.at(member.id).series -= member.series;
    user.members -= run.progress.members().size();
    members_ -= run.progress.members().size();
    user.series -= run.series;
    series_ -= run.series;
    return true;
  });
}

void RunModel::publish(const Moment& now) {
  const auto labels = [](std::string_view run, std::string_view user) {
    return std::vector<Label>{{"run", std::string(run)}, {"user", std::string(user)}};
  };
  auto next = std::make_shared<JobSnapshot>();
  next->dropped = dropped_;
  next->series.reserve(series_);
  for (const auto& [uid, user] : users_) {
    for (const auto& [name, run] : user.runs) {
      next->runs.push_back({user.label, run.label()});
      if (run.is_over()) next->ended.push_back(next->runs.back());
      run.write(labels(run.label(), user.label), now, next->series);
      for (const SenderId& id : run.progress.working()) {
        next->processes.push_back({id, {user.label, run.label()}});
      }
    }
    user.other.write(labels("_other", user.label), next->series);
  }
  other_.write(labels("_other", "_other"), next->series);
  const MutexLock lock(mutex_);
  snapshot_ = std::move(next);
}

RunModel::Usage RunModel::usage() const noexcept {
  std::size_t runs = 0;
  for (const auto& [uid, user] : users_) runs += user.runs.size();
  return {users_.size(), runs, processes_, members_, series_};
}

}  // namespace gpumeter::jobs
