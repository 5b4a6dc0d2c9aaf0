#include "collectors/jobs/model/run_model.hpp"

#include <algorithm>
#include <utility>

#include "collectors/jobs/wire/label_text.hpp"
#include "collectors/jobs/wire/payload.hpp"

// Entry, and who has room for what. What a line means is in run_model_lines.cpp, what time does in
// run_model_tick.cpp.
namespace gpumeter::jobs {
namespace {

constexpr std::string_view kOther = "_other";
/// Where a client names no run, as plain statsd has no tags, and is of no workload.
constexpr std::string_view kUnnamed = "unnamed";

const SenderFacts kNoFacts;

const SenderFacts& facts_of(const Sender& sender) noexcept {
  return sender.facts != nullptr ? *sender.facts : kNoFacts;
}

}  // namespace

void RunModel::drop(Refusal refusal, std::uint64_t count) noexcept {
  dropped_[static_cast<std::size_t>(refusal)] += count;
}

void RunModel::set_limits(const Limits& limits) noexcept {
  limits_ = limits;
  for (auto& [uid, user] : users_) user.bucket.set(limits.lines_per_second, limits.burst_lines);
}

void RunModel::receive(const Sender& sender, std::string_view payload, const Moment& now) {
  if (payload.size() > kMaxPayload) return drop(Refusal::too_long);
  User* const user = user_of(sender, now);
  if (user == nullptr) return drop(Refusal::series_limit);
  PayloadLines lines(payload);
  for (std::size_t count = 0; const auto line = lines.next(); ++count) {
    if (count >= kMaxLines) {
      drop(Refusal::too_many_lines);
    } else if (!user->bucket.take(now.elapsed)) {
      drop(Refusal::rate_limit);
    } else {
      take({sender.id, facts_of(sender), *user, now, now}, parse_line(*line));
    }
  }
  settle(sender.id);
}

void RunModel::receive_mllog(const Sender& sender, std::string_view run, std::string_view line,
                             const Moment& now) {
  if (line.size() > kMaxPayload) return drop(Refusal::too_long);
  const auto parsed = parse_mllog(line);
  if (!parsed) return;
  if (const auto* refusal = std::get_if<Refusal>(&*parsed)) return drop(*refusal);
  const auto& mllog = std::get<MllogLine>(*parsed);
  if (mllog.unix_time > now.unix + kTimestampTolerance) return drop(Refusal::bad_timestamp);
  User* const user = user_of(sender, now);
  if (user == nullptr) return drop(Refusal::series_limit);
  take_mllog({sender.id, facts_of(sender), *user, now, now.at(mllog.unix_time)}, run, mllog);
}

RunModel::User* RunModel::user_of(const Sender& sender, const Moment& now) {
  auto found = users_.find(sender.id.uid);
  if (found == users_.end()) {
    if (users_.size() >= limits_.users) return nullptr;
    const TokenBucket bucket(limits_.lines_per_second, limits_.burst_lines, now.elapsed);
    found = users_.emplace(sender.id.uid, User{.label = label_text(sender.user), .bucket = bucket}).first;
  }
  found->second.last_seen = now.elapsed;
  return &found->second;
}

/// nullptr: no room for it.
RunModel::Process* RunModel::process_of(const Origin& origin) {
  auto& processes = origin.user.processes;
  auto found = processes.find(origin.id);
  if (found == processes.end()) {
    if (processes.size() >= limits_.senders_per_user || processes_ >= limits_.senders) return nullptr;
    found = processes.try_emplace(origin.id).first;
    found->second.workload = origin.facts.workload;
    ++processes_;
  }
  found->second.last_seen = origin.now.elapsed;
  found->second.is_gone = false;  // the next tick asks again
  return &found->second;
}

std::string RunModel::run_name(const Origin& origin, std::string_view said) const {
  if (!said.empty()) return run_name_text(said);
  const auto found = origin.user.processes.find(origin.id);
  const bool is_known = found != origin.user.processes.end();
  if (is_known && !found->second.run.empty()) return found->second.run;
  const Workload& workload = is_known ? found->second.workload : origin.facts.workload;
  return workload.is_known() ? run_name_text(workload.name) : std::string(kUnnamed);
}

RunModel::Place RunModel::place(const Origin& origin, std::string_view run_name) {
  Process* const process = process_of(origin);
  if (process == nullptr || run_name == kOther) return {};
  Place place = place_of_member(origin, *process, run_name);
  if (place.member != nullptr) {
    place.run->heard(origin.now, origin.at);
    return place;
  }
  if (origin.user.members >= limits_.senders_per_user || members_ >= limits_.senders) return {};
  place.run = run_to_join(origin, *process, run_name);
  const bool is_new = place.run == nullptr;
  if (is_new && !has_room(origin, *process, kSeriesOfEveryRun)) return {};
  if (is_new) place.run = &add_run(origin, *process, run_name);
  place.member = &place.run->join(origin.id, origin.facts);
  ++origin.user.members;
  ++members_;
  place.run->heard(origin.now, origin.at);
  if (is_new) charge(origin, place, kSeriesOfEveryRun);
  return place;
}

RunModel::Place RunModel::place_of_member(const Origin& origin, Process& process,
                                          std::string_view run_name) const noexcept {
  const auto [begin, end] = origin.user.runs.equal_range(run_name);
  for (auto run = begin; run != end; ++run) {
    if (Member* const member = run->second.progress.find(origin.id)) return {&process, &run->second, member};
  }
  return {&process, nullptr, nullptr};
}

Run* RunModel::run_to_join(const Origin& origin, const Process& process, std::string_view run_name) {
  const Workload& workload = process.workload;
  const auto [begin, end] = origin.user.runs.equal_range(run_name);
  auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.workload == workload; });
  if (found == end) {
    found = std::find_if(begin, end, [&](const auto& entry) {
      return !workload.is_known() || !entry.second.workload.is_known();
    });
  }
  Run* const run = found != end ? &found->second : abandoned_run(origin, workload, run_name);
  if (run == nullptr) return nullptr;
  remove_gone(origin, *run);
  if (workload.is_known()) run->workload = workload;
  return run;
}

/// A Slurm job that is queued again keeps its number, so a job of another number is another task of the
/// array. Only the next tick finds the end of a process that nothing is asked about here. A line that finds
/// no room comes here each time, so the number of questions is bounded.
Run* RunModel::abandoned_run(const Origin& origin, const Workload& workload, std::string_view run_name) {
  constexpr int kMostAsked = 16;
  const auto [begin, end] = origin.user.runs.equal_range(run_name);
  int asked = 0;
  const auto found = std::find_if(begin, end, [&](auto& entry) {
    Run& run = entry.second;
    const bool are_jobs = run.workload.kind == workload.kind && workload.kind == cgroup::Kind::slurm_job;
    if (are_jobs) return false;
    if (!run.progress.members().empty() && ++asked > kMostAsked) return false;
    remove_gone(origin, run);
    return run.is_abandoned();
  });
  return found == end ? nullptr : &found->second;
}

Run& RunModel::add_run(const Origin& origin, const Process& process, std::string_view run_name) {
  auto& runs = origin.user.runs;
  const auto is_taken = [&](const std::string& label) {
    return label == kOther ||
           std::ranges::any_of(runs, [&](const auto& entry) { return entry.second.label() == label; });
  };
  std::string whole(run_name);
  std::string label = whole;
  if (process.workload.is_known() && is_taken(label)) {
    whole += '@' + process.workload.name;
    label = run_name_text(whole);
  }
  for (int copy = 2; is_taken(label); ++copy) label = run_name_text(whole + '#' + std::to_string(copy));
  Run& run = runs.emplace(run_name, Run(std::move(label), origin.at))->second;
  run.workload = process.workload;
  return run;
}

void RunModel::remove_gone(const Origin& origin, Run& run) {
  const std::size_t members = run.progress.members().size();
  const auto is_gone = [&](const Member& member) {
    const auto known = origin.user.processes.find(member.id);
    return known == origin.user.processes.end() ||
           this->is_gone(member.id, known->second.last_seen, origin.now);
  };
  run.remove(is_gone, origin.now, true);
  const std::size_t removed = members - run.progress.members().size();
  origin.user.members -= removed;
  members_ -= removed;
}

bool RunModel::has_room(const Origin& origin, const Process& process, std::size_t series) const noexcept {
  return process.series + series <= limits_.series_per_sender &&
         origin.user.series + series <= limits_.series_per_user && series_ + series <= limits_.series;
}

bool RunModel::has_room(const Origin& origin, const Place& place, std::size_t series) const noexcept {
  return place.run != nullptr && place.run->series + series <= limits_.series_per_run &&
         has_room(origin, *place.process, series);
}

void RunModel::charge(const Origin& origin, const Place& place, std::size_t series) noexcept {
  place.process->series += series;
  place.member->series += series;
  place.run->series += series;
  origin.user.series += series;
  series_ += series;
}

Cell* RunModel::cell_of(const Origin& origin, const Place& place, const Measure& measure) {
  if (place.run != nullptr) {
    if (Cell* const cell = place.run->cells.find(measure.word, measure.choice)) return cell;
  }
  const std::size_t series = series_of(measure.word);
  if (has_room(origin, place, series)) {
    charge(origin, place, series);
    return &place.run->cells.add(measure.word, measure.choice);
  }
  drop(Refusal::series_limit);
  return can_be_summed(measure.word) ? &overflow_cell(origin, measure) : nullptr;
}

/// The closed sets bound these to 901 series a user, and to the same once more for all.
Cell& RunModel::overflow_cell(const Origin& origin, const Measure& measure) {
  if (Cell* const cell = origin.user.other.find(measure.word, measure.choice)) return *cell;
  const std::size_t series = series_of(measure.word);
  if (series_ + series <= limits_.series) {
    origin.user.series += series;
    series_ += series;
    return origin.user.other.add(measure.word, measure.choice);
  }
  other_updated_ = origin.now.elapsed;
  Cell* const cell = other_.find(measure.word, measure.choice);
  return cell != nullptr ? *cell : other_.add(measure.word, measure.choice);
}

std::shared_ptr<const JobSnapshot> RunModel::snapshot() const {
  const MutexLock lock(mutex_);
  return snapshot_;
}

}  // namespace gpumeter::jobs
