#include "programs/profiler/desk.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/clock.hpp"
#include "base/folder.hpp"
#include "base/records.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::profiles {
namespace {

constexpr Nanoseconds kDay = std::chrono::hours(24);
constexpr std::string_view kSpent = "spent";  // a record of BudgetBook

bool is_final(Stage stage) noexcept { return stage == Stage::done || stage == Stage::failed; }

Nanoseconds patience(Stage stage, const Extent& extent) noexcept {
  if (stage == Stage::asked) return Desk::kTake;
  return extent.steps ? Desk::kSteps : Desk::kWrite + extent.duration;
}

constexpr const char* kFile = "profiles.state";

/// The first line of the file: the budget of another machine, as in a copied image, is not continued.
std::string machine() { return sysfs::read_text("/etc/machine-id"); }
std::string boot() { return sysfs::read_text("/proc/sys/kernel/random/boot_id"); }

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

void Ledger::count(const RunName& run, const std::string& trigger, Status status, Nanoseconds now,
                   Nanoseconds unix) {
  Page& entry = page(run, now);
  ++entry.counts[{trigger, status}];
  if (status == Status::done) entry.last[trigger] = to_seconds(unix);
}

Ledger::Page& Ledger::page(const RunName& run, Nanoseconds now) {
  if (!pages_.contains(run) && pages_.size() >= kMostRuns) {
    pages_.erase(std::ranges::min_element(pages_, {}, [](const auto& entry) { return entry.second.used; }));
  }
  Page& entry = pages_[run];
  entry.used = now;
  return entry;
}

void Ledger::write(SeriesList& out) const {
  for (const auto& [run, entry] : pages_) {
    const Labels labels{{"run", run.run}, {"user", run.user}};
    for (const auto& [key, count] : entry.counts) {
      out.add(catalog::ml_profiles,
              labels.with({{"trigger", key.first}, {"status", std::string(kStatusNames.of(key.second))}}),
              static_cast<double>(count));
    }
    for (const auto& [trigger, unix] : entry.last) {
      out.add(catalog::ml_profile_last_timestamp, labels.with({{"trigger", trigger}}), unix);
    }
  }
}

void Ledger::tick(Nanoseconds now) {
  std::erase_if(pages_, [&](const auto& entry) { return now - entry.second.used >= kDay; });
}

// Returns the time now.
Nanoseconds BudgetBook::forget_old() {
  const Nanoseconds now = clock_.boottime();
  while (!spent_.empty() && now - spent_.front().boot >= kDay) spent_.pop_front();
  return now;
}

std::optional<std::string> BudgetBook::refusal(const RunName& run) {
  const MutexLock lock(mutex_);
  const Nanoseconds now = forget_old();
  if (spent_.size() >= budget_.per_host) return "the machine's budget of the day is spent";
  const auto is_of_run = [&](const Spent& each) { return each.run == run; };
  if (std::ranges::count_if(spent_, is_of_run) >= budget_.per_run) {
    return "the run's budget of the day is spent";
  }
  const auto last = std::ranges::find_if(std::views::reverse(spent_), is_of_run);
  if (last != spent_.rend() && now - last->boot < budget_.cooldown) {
    return "the run was profiled a short time ago";
  }
  return std::nullopt;
}

void BudgetBook::spend(const RunName& run) {
  const MutexLock lock(mutex_);
  const Nanoseconds now = forget_old();
  spent_.push_back({run, now, clock_.realtime()});
}

std::string BudgetBook::save() {
  RecordWriter out;
  const MutexLock lock(mutex_);
  forget_old();
  for (const Spent& each : spent_) {
    out.begin(kSpent)(each.run.user, each.run.run, each.boot, each.unix);
  }
  return out.take();
}

Result<Done> BudgetBook::load(std::string_view section, bool is_of_this_boot) {
  const Nanoseconds boot = clock_.boottime();
  const Nanoseconds unix = clock_.realtime();
  std::deque<Spent> earlier;
  RecordReader in(section);
  while (in.next()) {
    Spent spent{};
    in.check(in.kind() == kSpent)(spent.run.user, spent.run.run, spent.boot, spent.unix);
    const Nanoseconds since_boot = std::clamp(spent.boot, boot - kDay, boot);
    const Nanoseconds since_1970 = std::clamp(spent.unix, unix - kDay, unix);
    spent.boot = is_of_this_boot ? since_boot : boot - (unix - since_1970);
    in.check(!in.has_field());
    earlier.push_back(std::move(spent));
  }
  if (in.failed()) return Error("the budget of profiles, line " + std::to_string(in.line()));
  std::ranges::stable_sort(earlier, {}, &Spent::boot);
  const MutexLock lock(mutex_);
  spent_ = std::move(earlier);
  return Done{};
}

Result<Done> BudgetBook::resume(const std::string& folder) {
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  if (folder.empty()) return Done{};
  const Result<Folder> opened = Folder::open(folder);
  if (!opened) return opened.error();
  if (!opened->facts(kFile)) return Done{};
  const Result<std::string> text = opened->read(kFile, kMost);
  if (!text) return text.error();
  std::string_view records = *text;
  if (take_until(records, ' ') != machine()) return Done{};
  const bool is_of_this_boot = take_until(records, '\n') == boot();
  Result<Done> loaded = load(records, is_of_this_boot);
  if (loaded) kept_ = save();
  return loaded;
}

Result<Done> BudgetBook::keep(const std::string& folder) {
  std::string now = save();
  if (folder.empty() || now == kept_) return Done{};
  kept_ = std::move(now);
  const Result<Folder> opened = Folder::open(folder);
  if (!opened) return opened.error();
  constexpr mode_t kOwnOnly = 0600;
  return opened->replace(kFile, machine() + " " + boot() + "\n" + kept_, kOwnOnly,
                         Folder::Outlives::power_cut);
}

}  // namespace gpumeter::profiles
