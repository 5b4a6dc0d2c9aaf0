#include "collectors/jobs/model/run_progress.hpp"

#include <algorithm>
#include <set>

namespace gpumeter::jobs {

Member* RunProgress::find(const SenderId& id) noexcept {
  const auto found = std::ranges::find(members_, id, &Member::id);
  return found == members_.end() ? nullptr : &*found;
}

Member& RunProgress::join(const SenderId& id, bool completed) {
  if (Member* const known = find(id)) return *known;
  if (members_.empty()) begin_generation(completed);
  Member& member = members_.emplace_back();
  member.id = id;
  return member;
}

void RunProgress::begin_generation(bool completed) noexcept {
  const bool restarted = worked_ && !completed;
  if (restarted) restarts_ += 1;
  announced_ = restarted ? 1 : 0;
  resumes_ = restarted ? highest_ : std::nullopt;
  highest_.reset();
  worked_ = false;
}

std::vector<Member> RunProgress::remove(const std::function<bool(const Member&)>& is_gone, bool up_to_alive) {
  std::vector<Member> gone;
  const auto take = [&](const Member& member) {
    if (!is_gone(member)) return false;
    gone.push_back(member);
    return true;
  };
  if (up_to_alive) {
    while (!members_.empty() && take(members_.back())) members_.pop_back();
  } else {
    std::erase_if(members_, take);
  }
  if (!gone.empty()) update_step();
  return gone;
}

bool RunProgress::is_live(const Member* besides) const noexcept {
  return std::ranges::any_of(members_, [&](const Member& member) {
    return !member.stopped && !member.leader && &member != besides;
  });
}

std::vector<SenderId> RunProgress::working() const {
  std::set<SenderId> stopped;
  for (const Member& member : members_) {
    if (member.stopped) stopped.insert(member.id);
  }
  std::vector<SenderId> working;
  for (const Member& member : members_) {
    const bool has_ended = member.stopped || (member.leader && stopped.contains(*member.leader));
    if (!has_ended) working.push_back(member.id);
  }
  return working;
}

void RunProgress::at_step(Member& member, double step) noexcept {
  member.step = step;
  highest_ = std::max(highest_.value_or(step), step);
  const double start = std::max(0.0, step - member.counted_steps);
  member.start = std::min(member.start.value_or(start), start);
  update_step();
}

void RunProgress::settle(Member& member) noexcept {
  if (!resumes_ || !member.step) return;
  const double start = std::min(*member.start, std::max(0.0, *member.step - member.counted_steps));
  lost_steps_ += std::max(0.0, *resumes_ - start);
  resumes_.reset();
}

std::optional<double> RunProgress::memory(std::size_t state) const noexcept {
  std::optional<double> sum;
  if (state >= kMemoryStates) return sum;
  for (const Member& member : members_) {
    const std::optional<double> part = member.stopped ? std::nullopt : member.memory[state];
    if (part) sum = sum.value_or(0) + *part;
  }
  return sum;
}

void RunProgress::begin_anew() noexcept {
  for (Member& member : members_) {
    member.step.reset();
    member.start.reset();
    member.counted_steps = 0;
  }
  step_.reset();
  highest_.reset();
}

void RunProgress::announced_restart(Member& member) noexcept {
  if (++member.restarts <= announced_) return;
  announced_ = member.restarts;
  restarts_ += 1;
}

void RunProgress::update_step() noexcept {
  std::optional<double> highest;
  for (const Member& member : members_) {
    if (member.step) highest = std::max(highest.value_or(*member.step), *member.step);
  }
  if (highest) step_ = highest;
}

}  // namespace gpumeter::jobs
