#include "collectors/jobs/model/user.hpp"

#include <algorithm>
#include <utility>

#include "collectors/jobs/wire/label_text.hpp"

namespace gpumeter::jobs {
namespace {

/// The run name of a client without a workload that names no run, such as plain statsd without tags.
constexpr std::string_view kUnnamed = "unnamed";

/// Senders of all users that are kept for the first processes of users, one each.
std::size_t senders_left(const Limits& limits, bool is_first) noexcept {
  return is_first ? limits.senders : limits.senders - std::min(limits.users, limits.senders / 4);
}

}  // namespace

std::string User::run_name(const Origin& from, std::string_view said) const {
  if (!said.empty()) return run_name_text(said);
  const auto found = processes_.find(from.id);
  const bool is_known = found != processes_.end();
  if (is_known && !found->second.run.empty()) return found->second.run;
  const Workload& workload = is_known ? found->second.workload : from.facts.workload;
  return workload.is_known() ? run_name_text(workload.name) : std::string(kUnnamed);
}

/// Returns nullptr if there is no room for the process.
Process* User::process_of(const Origin& from) {
  const Limits& limits = shared_.limits;
  auto found = processes_.find(from.id);
  if (found == processes_.end()) {
    const std::size_t most = senders_left(limits, processes_.empty());
    if (processes_.size() >= limits.senders_per_user || shared_.processes >= most) return nullptr;
    found =
        processes_.emplace(from.id, Process{.workload = from.facts.workload, .fresh = budget_of_process()})
            .first;
    ++shared_.processes;
  }
  found->second.last_seen = from.now.elapsed;
  found->second.is_gone = false;  // the next tick checks again
  return &found->second;
}

Place User::place(const Origin& from, std::string_view run_name) {
  Process* const process = process_of(from);
  if (process == nullptr || run_name == kOther) return {};
  const Limits& limits = shared_.limits;
  auto [run, member] = runs_.find(from.id, run_name);
  if (member == nullptr) {
    const std::size_t most = senders_left(limits, members_ == 0);
    if (members_ >= limits.senders_per_user || shared_.members >= most) return {};
    run = runs_.to_join(process->workload, run_name, from.now, [&](const Member& other) {
      const auto known = processes_.find(other.id);
      const bool gone = known == processes_.end() || is_silent(other, from.now.elapsed) ||
                        is_gone(other.id, known->second.last_seen, from.now.elapsed);
      if (gone) --members_, --shared_.members;
      return gone;
    });
    const bool is_new = run == nullptr;
    if (is_new && !make_room(*process, kSeriesOfEveryRun, from.now.elapsed)) return {};
    if (is_new) run = &runs_.add(process->workload, run_name, from.at, shared_.source, label_);
    member = &run->join(from.id, from.facts);
    ++members_;
    ++shared_.members;
    if (is_new) charge({process, run, member}, kSeriesOfEveryRun);
  }
  run->heard(from.now, from.at);
  member->last_seen = from.now.elapsed;
  return {process, run, member};
}

TokenBucket User::budget_of_process() const noexcept {
  return budget_of(shared_.limits.most_of_sender(), shared_.limits.renewal_of_sender, last_seen_);
}

void User::set_rates(const Limits& limits) noexcept {
  bucket_.set(limits.lines_per_second, limits.lines_per_second);
  fresh_ = budget_of(limits.series_per_user, limits.renewal_of_user, last_seen_);
  for (auto& [id, process] : processes_) process.fresh = budget_of_process();
}

bool User::has_budget(const Process& process) const noexcept {
  return process.fresh.has_any(last_seen_) && fresh_.has_any(last_seen_);
}

bool User::has_room(const Process& process, std::size_t series) const noexcept {
  return has_budget(process) && process.series + series <= shared_.limits.most_of_sender() &&
         series_ + series <= shared_.limits.series_per_user &&
         shared_.series + series <= shared_.limits.series;
}

/// Has room, or takes it from the user with the most series for one of the first series of this user.
bool User::make_room(const Process& process, std::size_t series, Nanoseconds now) {
  while (!has_room(process, series)) {
    if (!has_budget(process)) return false;
    const bool is_only_the_whole_full = process.series + series <= shared_.limits.most_of_sender() &&
                                        series_ + series <= shared_.limits.series_per_user;
    if (!is_only_the_whole_full || series_ + series > kFirstSeries) return false;
    if (!shared_.make_room(series_ + series, now)) return false;
  }
  return true;
}

bool User::has_room(const Place& place, std::size_t series) const noexcept {
  return place.run != nullptr && place.run->series + series <= shared_.limits.series_per_run &&
         has_room(*place.process, series);
}

void User::charge(const Place& place, std::size_t series) noexcept {
  for (std::size_t* const total :
       {&place.process->series, &place.member->series, &place.run->series, &series_, &shared_.series}) {
    *total += series;
  }
  place.process->fresh.take(last_seen_, static_cast<double>(series));
  fresh_.take(last_seen_, static_cast<double>(series));
}

Cell* User::cell(const Place& place, const Word& word, LabelChoice choice, Nanoseconds now) {
  if (place.run != nullptr) {
    if (Cell* const cell = place.run->cells.find(word, choice)) return cell;
  }
  const std::size_t series = series_of(word);
  if (place.run != nullptr && place.run->series + series <= shared_.limits.series_per_run &&
      make_room(*place.process, series, now)) {
    charge(place, series);
    return &place.run->cells.add(word, choice);
  }
  shared_.drop(Refusal::series_limit);
  return can_be_summed(word) ? &overflow_cell(word, choice, now) : nullptr;
}

/// The closed sets bound these cells to 902 series for each user, and to 902 more for all users together.
Cell& User::overflow_cell(const Word& word, LabelChoice choice, Nanoseconds now) {
  if (Cell* const cell = other_.find(word, choice)) return *cell;
  const std::size_t series = series_of(word);
  if (shared_.series + series <= shared_.limits.series) {
    series_ += series;
    shared_.series += series;
    return other_.add(word, choice);
  }
  return cell_of_others(word, choice, now);
}

/// The cell of user `_other`.
Cell& User::cell_of_others(const Word& word, LabelChoice choice, Nanoseconds now) {
  shared_.other_updated = now;
  Cell* const cell = shared_.other.find(word, choice);
  return cell != nullptr ? *cell : shared_.other.add(word, choice);
}

void User::remove_run(Nanoseconds now) {
  const auto run = runs_.least_used();
  for (const Cell& cell : run->second.cells.all()) {
    if (!can_be_summed(cell.word())) continue;
    Cell* const own = other_.find(cell.word(), cell.choice());
    (own != nullptr ? *own : cell_of_others(cell.word(), cell.choice(), now)).absorb(cell);
  }
  const std::size_t members = run->second.progress.members().size();
  series_ -= run->second.series;
  shared_.series -= run->second.series;
  members_ -= members;
  shared_.members -= members;
  runs_.remove(run);
}

void User::uncharge() noexcept {
  shared_.series -= series_;
  shared_.members -= members_;
  shared_.processes -= processes_.size();
}

bool User::is_gone(const SenderId& id, Nanoseconds last_seen, Nanoseconds now) const {
  return id.pid != 0 ? !shared_.is_alive(id) : now - last_seen >= shared_.limits.retention;
}

// All processes of a user that cannot be identified, such as those in containers, have one id. One that sends
// must not keep the runs of those that have ended.
bool User::is_silent(const Member& member, Nanoseconds now) const noexcept {
  return member.id.pid == 0 && now - member.last_seen >= shared_.limits.retention;
}

void User::find_gone(const Moment& now) {
  for (auto& [id, process] : processes_) process.is_gone = is_gone(id, process.last_seen, now.elapsed);
}

void User::remove_gone(const Moment& now) {
  std::erase_if(processes_, [](const auto& entry) { return entry.second.is_gone; });
  for (auto& [name, run] : runs_) {
    run.remove(
        [&](const Member& member) {
          return !processes_.contains(member.id) || is_silent(member, now.elapsed);
        },
        now);
    run.tick(now);
  }
  runs_.expire(now, shared_.limits.retention);
}

bool User::is_over(Nanoseconds now) const noexcept {
  return runs_.empty() && processes_.empty() && now - last_seen_ >= shared_.limits.retention;
}

void User::show(const Moment& now) const noexcept {
  for (const auto& [name, run] : runs_) run.show(now);
  other_.show();
}

void User::count() {
  for (auto& [id, process] : processes_) process.series = 0;
  series_ = other_.series();
  members_ = 0;
  for (const auto& [name, run] : runs_) {
    series_ += run.series;
    members_ += run.progress.members().size();
    for (const Member& member : run.progress.members()) processes_.at(member.id).series += member.series;
  }
  shared_.series += series_;
  shared_.members += members_;
  shared_.processes += processes_.size();
}

}  // namespace gpumeter::jobs
