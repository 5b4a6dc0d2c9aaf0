#include "collectors/jobs/model/run.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "collectors/api/catalog.hpp"

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

void RunProgress::save(RecordWriter& out) const {
  out.begin("progress").flag(worked_).number(step_).number(highest_).number(resumes_).integer(announced_);
  out.number(restarts_).number(lost_steps_);
  for (const Member& member : members_) {
    out.begin("member");
    jobs::save(out, member.id);
    out.flag(member.stopped).integer(static_cast<int>(member.end)).flag(member.announced);
    out.flag(member.announced_at.has_value()).integer(member.announced_at.value_or(0)).flag(member.inherits);
    out.flag(member.leader.has_value());
    jobs::save(out, member.leader.value_or(SenderId{}));
    out.flag(member.orphaned).number(member.step).number(member.start).number(member.counted_steps);
    out.integer(member.restarts).integer(static_cast<std::int64_t>(member.series)).time(member.last_seen);
    if (std::ranges::none_of(member.memory, &std::optional<double>::has_value)) continue;
    out.begin("memory");
    for (const std::optional<double>& part : member.memory) out.number(part);
  }
}

void RunProgress::restore(SavedReader& in) {
  worked_ = in.flag();
  step_ = in.optional_finite();
  highest_ = in.optional_finite();
  resumes_ = in.optional_finite();
  announced_ = static_cast<std::uint32_t>(in.integer(0, UINT32_MAX));
  restarts_ = in.finite();
  lost_steps_ = in.finite();
}

void RunProgress::restore_member(SavedReader& in) {
  Member member;
  member.id = in.sender_id();
  member.stopped = in.flag();
  member.end = static_cast<End>(in.integer(0, static_cast<int>(End::aborted)));
  member.announced = in.flag();
  const bool has_time = in.flag();
  const std::int64_t time = in.integer(INT64_MIN, INT64_MAX);
  if (has_time) member.announced_at = time;
  member.inherits = in.flag();
  const bool has_leader = in.flag();
  const SenderId leader = in.sender_id();
  if (has_leader) member.leader = leader;
  member.orphaned = in.flag();
  member.step = in.optional_finite();
  member.start = in.optional_finite();
  member.counted_steps = in.finite();
  member.restarts = static_cast<std::uint32_t>(in.integer(0, UINT32_MAX));
  member.series = in.count();
  member.last_seen = in.elapsed();
  if (find(member.id) != nullptr) in.fail();
  members_.push_back(member);
}

void RunProgress::restore_memory(SavedReader& in) {
  if (members_.empty()) return in.fail();
  for (std::optional<double>& part : members_.back().memory) part = in.optional_finite();
}

namespace {

// The first facts are in the line of the run; the others have lines of their own.
constexpr std::size_t kFactsOfRunLine = 3;

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

void Run::save(RecordWriter& out, std::string_view name) const {
  out.begin("run").text(name).text(label_);
  jobs::save(out, workload);
  out.integer(static_cast<std::int64_t>(series)).flag(announced_).number(samples_).time(last_live_);
  for (const Moment& moment : {start_, heard_, ended_, last_update_}) jobs::save(out, moment);
  out.integer(worst_ ? static_cast<int>(*worst_) : -1);
  out.integer(stop_ ? static_cast<int>(stop_->end) : -1);
  jobs::save(out, stop_ ? stop_->time : Moment{});
  for (std::size_t i = 0; i < kFactsOfRunLine; ++i) out.text(facts_[i]);
  for (std::size_t i = kFactsOfRunLine; i < kFactCount; ++i) {
    if (!facts_[i].empty()) out.begin("fact").text(to_string(static_cast<Fact>(i))).text(facts_[i]);
  }
  progress.save(out);
  cells.save(out);
  for (const Evaluation& evaluation : evaluations_) evaluation.save(out);
}

void Run::restore(SavedReader& in) {
  const auto end = [&]() -> std::optional<End> {
    const std::int64_t value = in.integer(-1, static_cast<int>(End::aborted));
    return value < 0 ? std::nullopt : std::optional(static_cast<End>(value));
  };
  series = in.count();
  announced_ = in.flag();
  samples_ = in.finite();
  last_live_ = in.elapsed();
  for (Moment* const moment : {&start_, &heard_, &ended_, &last_update_}) *moment = in.moment();
  worst_ = end();
  const std::optional<End> stopped = end();
  const Moment at = in.moment();
  if (stopped) stop_ = Stop{at, *stopped};
  RunFacts facts;
  for (std::size_t i = 0; i < kFactsOfRunLine; ++i) facts[i] = label_text(in.text());
  note_facts(facts);
}

void Run::restore_fact(SavedReader& in) {
  const std::optional<Fact> fact = kFactNames.find(in.text());
  const std::string text = in.text();
  if (!fact || !is_acceptable(*fact, text)) return in.fail();
  RunFacts facts;
  facts[static_cast<std::size_t>(*fact)] = text;
  note_facts(facts);
}

}  // namespace gpumeter::jobs
