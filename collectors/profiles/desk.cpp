#include "collectors/profiles/desk.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter::profiles {
namespace {

bool is_final(Stage stage) noexcept { return stage == Stage::done || stage == Stage::failed; }

Nanoseconds patience(Stage stage, const Extent& extent) noexcept {
  if (stage == Stage::asked) return Desk::kTake;
  return extent.steps ? Desk::kSteps : Desk::kWrite + extent.duration;
}

}  // namespace

std::string file_of(const Order& order, const Member& member) {
  return member.door->file_of(order, member.pid, member.inner_pid);
}

Result<Desk::Number> Desk::open(Request request, Nanoseconds now) {
  Open open{.number = ++last_, .request = std::move(request), .began = now};
  open.has_client = open.request.trigger == kByRequest;
  for (const Member& member : open.request.members) {
    if (const Result<Done> asked = member.door->ask(member.pid, open.request.order, now); !asked) {
      for (const Place& place : open.places) place.member.door->release(place.member.pid);
      return asked.error().with("process " + std::to_string(member.pid));
    }
    open.places.push_back({member, Stage::asked, now});
  }
  open_.push_back(std::move(open));
  return last_;
}

std::vector<Desk::Event> Desk::tick(Nanoseconds now) {
  std::vector<Event> events;
  for (Open& open : open_) {
    for (Place& place : open.places) look(open, place, now, events);
    if (is_over(open)) events.push_back(closed(open, now));
  }
  std::erase_if(open_, is_over);
  return events;
}

void Desk::look(Open& open, Place& place, Nanoseconds now, std::vector<Event>& events) {
  if (now - place.since >= kSee) place.is_unseen = false;
  if (is_final(place.stage)) return;
  const Member& member = place.member;
  Progress progress = member.door->progress(member.pid);
  if (progress.stage == Stage::none) progress = {Stage::failed, "the process is no longer known"};
  const bool is_late =
      progress.stage == place.stage && now - place.since >= patience(place.stage, open.request.order.extent);
  if (is_late) {
    progress = {Stage::failed, place.stage == Stage::asked ? "the process did not take the order in time"
                                                           : "the process did not end its trace in time"};
    open.is_late = true;
  }
  if (progress.stage == place.stage) return;
  place.stage = progress.stage;
  place.since = now;
  const std::string pid = std::to_string(member.pid);
  std::string line = "taken " + pid;
  if (progress.stage == Stage::done) {
    line = "done " + pid + " " + file_of(open.request.order, member);
    place.is_unseen = open.has_client;
  }
  if (progress.stage == Stage::failed) {
    line = "failed " + pid + " " + progress.why;
    if (open.error.empty()) open.error = "process " + pid + ": " + progress.why;
  }
  if (is_final(place.stage)) member.door->release(member.pid);
  events.push_back({open.number, std::move(line), std::nullopt, {}});
}

bool Desk::is_over(const Open& open) noexcept {
  return std::ranges::all_of(open.places,
                             [](const Place& place) { return is_final(place.stage) && !place.is_unseen; });
}

Desk::Event Desk::closed(Open& open, Nanoseconds now) {
  Outcome outcome{Status::done, open.error, now - open.began};
  if (!open.error.empty()) outcome.status = open.is_late ? Status::timeout : Status::failed;
  return {open.number, "", std::move(outcome), std::move(open.request)};
}

bool Desk::seen(Number number, int pid, const std::string& error) {
  for (Open& open : open_) {
    if (open.number != number) continue;
    for (Place& place : open.places) {
      if (place.member.pid != pid || !std::exchange(place.is_unseen, false)) continue;
      if (open.error.empty() && !error.empty()) open.error = "process " + std::to_string(pid) + ": " + error;
      return true;
    }
  }
  return false;
}

// Orders that were taken go on, and are counted at their end.
void Desk::abandon(Number number) {
  for (Open& open : open_) {
    if (open.number != number) continue;
    open.has_client = false;
    for (Place& place : open.places) {
      place.is_unseen = false;
      if (place.stage != Stage::asked) continue;
      if (place.member.door->progress(place.member.pid).stage != Stage::asked) continue;
      place.member.door->release(place.member.pid);
    }
  }
}

bool Desk::has_automatic() const noexcept {
  return std::ranges::any_of(open_, [](const Open& open) { return open.request.trigger != kByRequest; });
}

bool Desk::has(Number number, int pid) const {
  const std::vector<int> own = pids(number);
  return std::ranges::find(own, pid) != own.end();
}

std::vector<int> Desk::pids(std::optional<Number> number) const {
  std::vector<int> pids;
  for (const Open& open : open_) {
    if (number && open.number != *number) continue;
    for (const Place& place : open.places) {
      if (!is_final(place.stage)) pids.push_back(place.member.pid);
    }
  }
  return pids;
}

}  // namespace gpumeter::profiles
