#include "collectors/jobs/model/run.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/wire/label_text.hpp"

namespace gpumeter::jobs {

namespace {

constexpr const char* kStatuses[] = {"success", "lost", "aborted"};  // by End

/// A start's time is cut to whole seconds.
constexpr Nanoseconds kPrecision = std::chrono::seconds(1);
/// A run that was heard of this long after its start may have had evaluations before.
constexpr Nanoseconds kLate = std::chrono::seconds(2);

/// The time of a start as an instant that is not after now.
Moment moment_of(std::int64_t time, const Moment& now) noexcept {
  if (time > now.unix / kPrecision) return now;
  return now.at(kPrecision * std::max<std::int64_t>(time, 0));
}

/// Whether a process that says it started a run at `start` began after that, whatever was cut off.
bool is_before(const Moment& start, std::optional<Nanoseconds> began) noexcept {
  return began && start.elapsed + kPrecision < *began;
}

}  // namespace

Moment bounded_start(std::int64_t time, std::optional<Nanoseconds> began, const Moment& now) noexcept {
  const Nanoseconds earliest = began.value_or(Nanoseconds(0));
  const Moment said = moment_of(time, now);
  if (!is_before(said, earliest)) return said;
  return {earliest, now.unix - (now.elapsed - earliest)};
}

Member& Run::join(const SenderId& id, const SenderFacts& facts) {
  const auto in_facts = [&](const Member& member) {
    return std::ranges::find(facts.ancestors, member.id.pid) != facts.ancestors.end();
  };
  const auto ancestor = std::ranges::find_if(progress.members(), in_facts);
  std::optional<SenderId> leader;
  if (ancestor != progress.members().end()) {
    leader = ancestor->leader ? ancestor->leader : ancestor->id;
  } else if (std::ranges::all_of(progress.members(), &Member::orphaned)) {
    progress.remove([](const Member&) { return true; });
  }
  if (is_abandoned()) {  // it goes on
    stop_.reset();
    worst_.reset();
  }
  Member& member = progress.join(id, stop_.has_value());
  member.leader = leader;
  return member;
}

void Run::heard(const Moment& now, const Moment& at) noexcept {
  last_live_ = now.elapsed;
  last_update_ = at;
}

void Run::remove(const std::function<bool(const Member&)>& is_gone, const Moment& now, bool up_to_alive) {
  std::vector<Member> gone;
  const auto note = [&](const Member& member) {
    if (!is_gone(member)) return false;
    gone.push_back(member);
    return true;
  };
  up_to_alive ? progress.remove_until_alive(note) : progress.remove(note);
  for (const Member& member : gone) left(member, now);
  stop_if_over();
}

/// Who took part for it takes part for itself from now on, or not at all.
void Run::left(const Member& gone, const Moment& now) {
  if (gone.leader) return;
  bool is_followed = false;
  for (Member& other : progress.members()) {
    if (other.leader != gone.id) continue;
    if (gone.stopped) {
      other.stopped = true;
      continue;
    }
    other.leader.reset();
    other.orphaned = true;
    is_followed = is_followed || other.announced;
    if (other.announced && other.stopped) ended(other.end, now);
  }
  if (gone.stopped || stop_) return;
  const bool is_known = gone.id.pid > 0 && gone.id.start_time != 0;
  if (gone.announced && is_known && !is_followed) return ended(End::lost, now);
  ended_ = now;
}

void Run::ended(End end, const Moment& now) noexcept {
  worst_ = std::max(worst_.value_or(end), end);
  ended_ = now;
}

void Run::stop_if_over() noexcept {
  if (!stop_ && worst_ && !progress.is_live()) stop_ = Stop{ended_, *worst_};
}

void Run::tick(const Moment& now) noexcept {
  if (progress.is_live()) last_live_ = now.elapsed;
}

bool Run::is_expired(const Moment& now, Nanoseconds retention) const noexcept {
  return !progress.is_live() && now.elapsed - last_live_ >= retention;
}

bool Run::is_abandoned() const noexcept {
  return progress.members().empty() && !(stop_ && stop_->end == End::success);
}

/// The other ranks of a run that stopped well may start later than the one that stopped first: their start is
/// from before that stop, or other ranks have not stopped yet. A process that has not stopped only repeats
/// itself.
bool Run::begins_anew(const Member& member, const RunStart& said) const noexcept {
  if (progress.is_live(&member)) return false;
  if (member.stopped && said.time && member.announced_at) return *said.time > *member.announced_at;
  if (member.announced && !member.stopped) return false;
  const bool ended_well = stop_ && stop_->end == End::success;
  return ended_well && !(said.time && *said.time < stop_->time.unix / kPrecision);
}

void Run::begin_anew(const Moment& start, const Moment& now) noexcept {
  start_ = start;
  heard_ = now;
  stop_.reset();
  worst_.reset();
  samples_ = 0;
  progress.begin_anew();
  for (Evaluation& evaluation : evaluations_) evaluation.forget();
}

void Run::started(Member& member, const RunStart& said, const SenderFacts& facts, const Moment& at) {
  note_facts(said.facts);
  const bool repeats = member.announced && said.time && said.time == member.announced_at;
  if (!repeats) {
    const Moment start = said.time ? bounded_start(*said.time, facts.began, at) : at;
    const bool is_new_run = begins_anew(member, said);
    member.announced_at = said.time;
    member.inherits = said.time && is_before(moment_of(*said.time, at), facts.began);
    find_leader(member);
    if (is_new_run && !member.leader) {
      begin_anew(start, at);
    } else if (!announced_ || start.elapsed < start_.elapsed) {
      start_ = start;
    }
  }
  announced_ = member.announced = true;
  if (member.leader) return;
  member.stopped = false;
  if (stop_ && stop_->end != End::success) worst_.reset();
  stop_.reset();
}

/// A fork repeats the run_start of its parent, with a time from before the fork began. A fork within the same
/// second is known as a descendant only (see join()).
void Run::find_leader(Member& member) noexcept {
  const auto same_start = [&](const Member& other) {
    return &other != &member && other.announced && other.announced_at &&
           other.announced_at == member.announced_at;
  };
  const Member* const leader = member.leader ? progress.find(*member.leader) : nullptr;
  if (leader != nullptr && same_start(*leader)) return;
  member.leader.reset();
  for (Member& other : progress.members()) {
    if (!same_start(other) || other.leader) continue;
    if (member.inherits && !other.inherits) member.leader = other.id;
    if (other.inherits && !member.inherits) other.leader = member.id;
  }
}

void Run::note_facts(const RunFacts& facts) {
  std::vector<Label> said;
  for (const auto& [name, value] : {std::pair("framework", facts.framework),
                                    std::pair("version", facts.version), std::pair("model", facts.model)}) {
    if (!value.empty()) said.push_back({name, label_text(value)});
  }
  if (!said.empty()) facts_ = std::move(said);  // not every rank need say it
}

void Run::stopped(Member& member, bool success, const Moment& at) {
  member.stopped = true;
  member.end = success ? End::success : End::aborted;
  if (member.leader) return;
  ended(member.end, at);
  stop_.reset();
  stop_if_over();
}

Evaluation* Run::find_evaluation(std::string_view metric) noexcept {
  const auto found = std::ranges::find(evaluations_, metric, &Evaluation::metric);
  return found == evaluations_.end() ? nullptr : &*found;
}

double Run::new_samples(double so_far) noexcept {
  const double before = std::exchange(samples_, std::max(samples_, so_far));
  return samples_ - before;
}

double Run::run_time(const Moment& now) const noexcept {
  const Moment& end = stop_ ? stop_->time : progress.members().empty() ? last_update_ : now;
  return std::max(0.0, seconds_between(start_, end));
}

void Run::write_info(const std::vector<Label>& labels, std::vector<JobSeries>& out) const {
  if (facts_.empty()) return;
  std::vector<Label> all = labels;
  all.insert(all.end(), facts_.begin(), facts_.end());
  out.push_back({{&catalog::ml_run_info, std::move(all)}, Part::value, 1});
}

void Run::write(const std::vector<Label>& labels, const Moment& now, std::vector<JobSeries>& out) const {
  const auto add = [&](const MetricDescriptor& family, double value) {
    out.push_back({{&family, labels}, Part::value, value});
  };
  add(catalog::ml_run_start_timestamp, to_seconds(start_.unix));
  if (stop_) {
    std::vector<Label> all = labels;
    all.push_back({"status", kStatuses[static_cast<std::size_t>(stop_->end)]});
    out.push_back(
        {{&catalog::ml_run_stop_timestamp, std::move(all)}, Part::value, to_seconds(stop_->time.unix)});
  }
  add(catalog::ml_run_time, run_time(now));
  add(catalog::ml_last_update_timestamp, to_seconds(last_update_.unix));
  add(catalog::ml_run_restarts, progress.restarts());
  add(catalog::ml_lost_steps, progress.lost_steps());
  if (progress.step()) add(catalog::ml_step, *progress.step());
  write_info(labels, out);
  const bool is_late = heard_.elapsed - start_.elapsed > kLate;
  for (const Evaluation& evaluation : evaluations_) evaluation.write(labels, start_, is_late, out);
  cells.write(labels, out);
}

}  // namespace gpumeter::jobs
