#include "collectors/jobs/model/user.hpp"

#include <algorithm>
#include <utility>

#include "collectors/jobs/wire/line.hpp"

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
  auto [run, member] = find(from.id, run_name);
  if (member == nullptr) {
    const std::size_t most = senders_left(limits, members_ == 0);
    if (members_ >= limits.senders_per_user || shared_.members >= most) return {};
    run = run_to_join(process->workload, run_name, from.now);
    const bool is_new = run == nullptr;
    if (is_new && !make_room(*process, kSeriesOfEveryRun, from.now.elapsed)) return {};
    if (is_new) run = &add_run(process->workload, run_name, from.at);
    member = &run->join(from.id, from.facts);
    ++members_;
    ++shared_.members;
    if (is_new) charge({process, run, member}, kSeriesOfEveryRun);
  }
  run->heard(from.now, from.at);
  member->last_seen = from.now.elapsed;
  return {process, run, member};
}

/// Takes a member that is gone out of the counts; its run removes it.
bool User::has_left(const Member& member, Nanoseconds now) {
  const auto known = processes_.find(member.id);
  const bool is_over =
      known == processes_.end() || is_silent(member, now) || is_gone(member.id, known->second.last_seen, now);
  if (is_over) --members_, --shared_.members;
  return is_over;
}

std::pair<Run*, Member*> User::find(const SenderId& id, std::string_view name) noexcept {
  const auto [begin, end] = runs_.equal_range(name);
  for (auto run = begin; run != end; ++run) {
    if (Member* const member = run->second.progress.find(id)) return {&run->second, member};
  }
  return {};
}

Run* User::run_to_join(const Workload& workload, std::string_view name, const Moment& now) {
  const auto [begin, end] = runs_.equal_range(name);
  auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.workload == workload; });
  if (found == end) {
    found = std::find_if(begin, end, [&](const auto& entry) {
      return !workload.is_known() || !entry.second.workload.is_known();
    });
  }
  Run* const run = found != end ? &found->second : abandoned_run(workload, name, now);
  if (run == nullptr) return nullptr;
  run->remove([&](const Member& member) { return has_left(member, now.elapsed); }, now, true);
  if (workload.is_known()) run->workload = workload;
  return run;
}

/// A requeued Slurm job keeps its number, so a job with another number is another task of the array. This
/// call removes ended processes itself, because otherwise only the next tick would. Each line that finds no
/// room repeats the call, so the number of checks is limited.
Run* User::abandoned_run(const Workload& workload, std::string_view name, const Moment& now) {
  constexpr int kMostAsked = 16;
  const auto [begin, end] = runs_.equal_range(name);
  int asked = 0;
  const auto found = std::find_if(begin, end, [&](auto& entry) {
    Run& run = entry.second;
    const bool are_jobs = run.workload.kind == workload.kind && workload.kind == cgroup::Kind::slurm_job;
    if (are_jobs) return false;
    if (!run.progress.members().empty() && ++asked > kMostAsked) return false;
    run.remove([&](const Member& member) { return has_left(member, now.elapsed); }, now, true);
    return run.is_abandoned();
  });
  return found == end ? nullptr : &found->second;
}

Run& User::add_run(const Workload& workload, std::string_view name, const Moment& at) {
  std::string whole(name);
  std::string label = whole;
  if (workload.is_known() && is_taken(label)) {
    whole += '@' + workload.name;
    label = run_name_text(whole);
  }
  for (int copy = 2; is_taken(label); ++copy) label = run_name_text(whole + '#' + std::to_string(copy));
  const RunSeries series(shared_.source, label, label_);
  Run& run = runs_.emplace(name, Run(std::move(label), series, at))->second;
  run.workload = workload;
  return run;
}

bool User::is_taken(const std::string& label) const noexcept {
  return label == kOther ||
         std::ranges::any_of(runs_, [&](const auto& entry) { return entry.second.label() == label; });
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
  const auto run = std::ranges::min_element(runs_, {}, [](const auto& entry) {
    return std::pair(!entry.second.progress.members().empty(), entry.second.last_heard());
  });
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
  runs_.erase(run);
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
  std::erase_if(runs_,
                [&](const auto& entry) { return entry.second.is_expired(now, shared_.limits.retention); });
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

/// Adds a run of an earlier process. The lines of its parts follow.
Run& User::restore_run(SavedReader& in) {
  std::string name = in.text();
  std::string label = in.text();
  if (label.empty() || is_taken(label)) in.fail();
  const RunSeries made(shared_.source, label, label_);
  Run& run = runs_.emplace(std::move(name), Run(std::move(label), made, Moment{}))->second;
  run.workload = in.workload();
  run.restore(in);
  return run;
}

void User::save(RecordWriter& out, std::uint32_t account, std::string_view label) const {
  out.begin("user").integer(account).text(label).time(last_seen_);
  for (const auto& [id, process] : processes_) {
    out.begin("process");
    jobs::save(out, id);
    jobs::save(out, process.workload);
    out.text(process.run).text(process.benchmark).time(process.last_seen);
  }
  other_.save(out);
  for (const auto& [name, run] : runs_) run.save(out, name);
}

void User::restore_process(SavedReader& in) {
  const SenderId id = in.sender_id();
  Process process{.fresh = budget_of_process()};
  process.workload = in.workload();
  process.run = in.text();
  process.benchmark = in.text();
  process.last_seen = in.elapsed();
  if (!processes_.emplace(id, std::move(process)).second) in.fail();
}

/// A line after the line of its user, or of its run.
void User::restore_line(SavedReader& in, Run*& run) {
  const std::string_view kind = in.kind();
  Cells& cells = run != nullptr ? run->cells : other_;
  const auto restore_of_run = [&] {
    if (kind == "progress") return run->progress.restore(in), true;
    if (kind == "member") return run->progress.restore_member(in), true;
    if (kind == "memory") return run->progress.restore_memory(in), true;
    if (kind == "fact") return run->restore_fact(in), true;
    if (kind == "custom") return cells.restore_custom(in), true;
    if (kind == "evaluation") return run->add_evaluation(in.text()).restore(in), true;
    return false;
  };
  if (kind == "run") {
    run = &restore_run(in);
  } else if (kind == "process") {
    restore_process(in);
  } else if (kind == "cell") {
    cells.restore_cell(in);
  } else if (run == nullptr || !restore_of_run()) {
    in.fail();
  }
}

// count() needs the process of each member.
bool User::is_whole() const {
  return std::ranges::all_of(runs_, [&](const auto& entry) {
    return std::ranges::all_of(entry.second.progress.members(),
                               [&](const Member& member) { return processes_.contains(member.id); });
  });
}

}  // namespace gpumeter::jobs
