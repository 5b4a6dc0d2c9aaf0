#include "collectors/jobs/run_model.hpp"

#include <algorithm>
#include <utility>

#include "collectors/jobs/label_text.hpp"
#include "collectors/jobs/payload.hpp"

// Entry, and who has room for what. What a line means is in run_model_lines.cpp, what time does in
// run_model_tick.cpp.
namespace gpumeter::jobs {
namespace {

constexpr std::string_view kOther = "_other";
/// Where a client names no run: plain statsd has no tags.
constexpr std::string_view kUnnamed = "unnamed";

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
      take({sender.id, *user, now, now}, parse_line(*line));
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
  take_mllog({sender.id, *user, now, now.at(mllog.unix_time)}, label_text(run), mllog);
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
    ++processes_;
  }
  found->second.last_seen = origin.now.elapsed;
  return &found->second;
}

std::string RunModel::run_name(const Origin& origin, std::string_view said) const {
  if (!said.empty()) return label_text(said);
  const auto found = origin.user.processes.find(origin.id);
  const bool known = found != origin.user.processes.end() && !found->second.run.empty();
  return known ? found->second.run : std::string(kUnnamed);
}

RunModel::Place RunModel::place(const Origin& origin, std::string_view run_name) {
  Process* const process = process_of(origin);
  if (process == nullptr || run_name == kOther) return {};
  auto& runs = origin.user.runs;
  auto found = runs.find(run_name);
  const bool is_new = found == runs.end();
  if (is_new && !has_room(origin, *process, kSeriesOfEveryRun)) return {};
  const bool joins = is_new || found->second.progress.find(origin.id) == nullptr;
  if (joins && (origin.user.members >= limits_.senders_per_user || members_ >= limits_.senders)) return {};
  if (is_new) found = runs.emplace(run_name, Run(origin.at)).first;
  Run& run = found->second;
  const std::size_t members = run.progress.members().size();
  Member& member = run.heard(origin.id, origin.now, origin.at, [&](const Member& other) {
    const auto known = origin.user.processes.find(other.id);
    return known == origin.user.processes.end() || is_gone(other.id, known->second.last_seen, origin.now);
  });
  const std::size_t change = run.progress.members().size() - members;  // wraps where some are gone
  origin.user.members += change;
  members_ += change;
  const Place place{process, &run, &member};
  if (is_new) charge(origin, place, kSeriesOfEveryRun);
  return place;
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

/// The closed sets bound these to 910 series a user, and to the same once more for all.
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
