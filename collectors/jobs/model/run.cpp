#include "collectors/jobs/model/run.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter::jobs {

namespace {

constexpr const char* kStatuses[] = {"success", "lost", "aborted"};  // by End

constexpr const MetricDescriptor* kFigures[] = {
    &catalog::ml_run_start_timestamp, &catalog::ml_run_time,   &catalog::ml_last_update_timestamp,
    &catalog::ml_run_restarts,        &catalog::ml_lost_steps, &catalog::ml_step};

/// The time of a run_start has whole seconds.
constexpr Nanoseconds kPrecision = std::chrono::seconds(1);
/// If a run's first message arrives this long after its start, the run may have had evaluations before.
constexpr Nanoseconds kLate = std::chrono::seconds(2);

/// Converts the time of a start to an instant that is not after `now`.
Moment moment_of(std::int64_t time, const Moment& now, Nanoseconds fraction = {}) noexcept {
  if (time > now.unix / kPrecision) return now;
  return now.at(std::min(kPrecision * std::max<std::int64_t>(time, 0) + fraction, now.unix));
}

/// Returns whether the process began after the start that it reports, beyond the precision of the start.
bool is_before(const Moment& start, std::optional<Nanoseconds> began) noexcept {
  return began && start.elapsed + kPrecision < *began;
}

/// The start of a run that a process reports as `time`. It is not after `now` and not before the process
/// began (the machine, if `began` is unknown).
Moment bounded_start(std::int64_t time, Nanoseconds fraction, std::optional<Nanoseconds> began,
                     const Moment& now) noexcept {
  const Nanoseconds earliest = began.value_or(Nanoseconds(0));
  const Moment said = moment_of(time, now, fraction);
  if (!is_before(said, earliest)) return said;
  return {earliest, now.unix - (now.elapsed - earliest)};
}

}  // namespace

Run::Run(std::string label, const RunSeries& made, const Moment& now)
    : cells(made),
      label_(std::move(label)),
      series_(made),
      start_(now),
      heard_(now),
      last_update_(now),
      last_live_(now.elapsed) {
  for (std::size_t i = 0; i < figures_.size(); ++i) figures_[i] = series_.add(*kFigures[i]);
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    stops_[i] =
        series_.add(catalog::ml_run_stop_timestamp, series_.labels().with({{"status", kStatuses[i]}}));
  }
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
  if (is_abandoned()) {  // the run continues
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
  for (const Member& member : progress.remove(is_gone, up_to_alive)) left(member, now);
  stop_if_over();
}

/// The members that `gone` led lose their leader, or count as stopped if it stopped.
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
  for (Cell& cell : cells.all()) {
    if (cell.word().shape == Shape::memory) cell.hold(progress.memory(cell.choice()[0]));
  }
}

bool Run::is_expired(const Moment& now, Nanoseconds retention) const noexcept {
  return !progress.is_live() && now.elapsed - last_live_ >= retention;
}

bool Run::is_abandoned() const noexcept {
  return progress.members().empty() && !(stop_ && stop_->end == End::success);
}

/// Other ranks may start after the first rank has stopped with success. Their start is then older than that
/// stop, or some rank has not stopped yet. A process that has not stopped only repeats its start.
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
  facts_ = {};
  info_ = OwnedSlot();
  progress.begin_anew();
  for (Evaluation& evaluation : evaluations_) evaluation.forget();
}

void Run::started(Member& member, const RunStart& said, const SenderFacts& facts, const Moment& at) {
  const bool repeats = member.announced && said.time && said.time == member.announced_at;
  if (!repeats) {
    const Moment start = said.time ? bounded_start(*said.time, said.fraction, facts.began, at) : at;
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
  note_facts(said.facts);
  announced_ = member.announced = true;
  if (member.leader) return;
  member.stopped = false;
  if (stop_ && stop_->end != End::success) worst_.reset();
  stop_.reset();
}

/// A fork repeats the run_start of its parent, with a time from before the fork began. If the fork began
/// within the same second, only its ancestry identifies it (see join()).
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

/// Some ranks may report no facts, or fewer: a known fact stays until a process reports another.
void Run::note_facts(const RunFacts& facts) {
  RunFacts known = facts_;
  for (std::size_t i = 0; i < kFactCount; ++i) {
    if (!facts[i].empty()) known[i] = facts[i];
  }
  if (known == facts_) return;
  facts_ = std::move(known);
  info_ = series_.add(catalog::ml_run_info, series_.labels().with(labels_of(facts_)));
  info_.show(1);
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

void Run::show(const Moment& now) const noexcept {
  const std::optional<double> figures[] = {to_seconds(start_.unix),       run_time(now),
                                           to_seconds(last_update_.unix), progress.restarts(),
                                           progress.lost_steps(),         progress.step()};
  for (std::size_t i = 0; i < figures_.size(); ++i) figures_[i].show(figures[i]);
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    const bool is_so = stop_ && static_cast<std::size_t>(stop_->end) == i;
    stops_[i].show(is_so ? std::optional(to_seconds(stop_->time.unix)) : std::nullopt);
  }
  const bool is_late = heard_.elapsed - start_.elapsed > kLate;
  for (const Evaluation& evaluation : evaluations_) evaluation.show(start_, is_late);
  cells.show();
}

}  // namespace gpumeter::jobs
