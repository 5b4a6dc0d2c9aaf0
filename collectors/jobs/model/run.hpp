#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/jobs/model/cells.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"

namespace gpumeter::jobs {

/// How a process of a run ended, from best to worst.
enum class End : std::uint8_t { success, lost, aborted };
inline constexpr std::string_view kStatuses[] = {"success", "lost", "aborted"};  ///< by End

/// The field of an optional value that has its place even if there is none.
template <class Fields, class T>
void with_place(Fields& f, std::optional<T>& value) {
  bool has_value = value.has_value();
  T known = value.value_or(T());
  f(has_value, known);
  if constexpr (Fields::kReads) value = has_value ? std::optional(known) : std::nullopt;
}

/// The field of an end; -1: none.
template <class Fields>
void with_number(Fields& f, std::optional<End>& end) {
  int number = end ? static_cast<int>(*end) : -1;
  f(number).check(number >= -1 && number <= static_cast<int>(End::aborted));
  if constexpr (Fields::kReads) end = number < 0 ? std::nullopt : std::optional(static_cast<End>(number));
}

/// A process of a run.
struct Member {
  SenderId id;
  bool stopped = false;                      ///< sent run_stop, and no run_start since
  End end = End::success;                    ///< of its last run_stop
  bool announced = false;                    ///< sent run_start
  std::optional<std::int64_t> announced_at;  ///< the time in its last run_start, Unix seconds
  bool inherits = false;  ///< `announced_at` is from before the process began: it is a fork
  /// The process that this one works for, as a data loader's worker does: a member that is its ancestor, or
  /// whose run_start it repeats. A member with a leader does not affect the end of the run. nullopt: none.
  std::optional<SenderId> leader;
  bool orphaned = false;        ///< its leader is gone without a run_stop, and no other has followed
  std::optional<double> step;   ///< its last ml.step
  std::optional<double> start;  ///< lowest reported ml.step, less the steps counted by then
  double counted_steps = 0;     ///< its ml.steps of split train
  std::uint32_t restarts = 0;   ///< its `restart` events
  std::size_t series = 0;       ///< charged to this process
  /// Its last ml.memory, by the place of the label's value. nullopt: it sent none.
  std::array<std::optional<double>, kMemoryStates> memory;
  Nanoseconds last_seen{};  ///< its last message for this run
};

/// Without `memory`, which has a line of its own.
template <class Fields>
void fields(Fields& f, Member& member) {
  f(member.id, member.stopped, member.end, member.announced).check(member.end <= End::aborted);
  with_place(f, member.announced_at);
  f(member.inherits);
  with_place(f, member.leader);
  f(member.orphaned, member.step, member.start, member.counted_steps, member.restarts, member.series);
  f.elapsed(member.last_seen);
}

/// A run_start. `time`: the event's own time (`d:`) in Unix seconds, and `fraction` what they leave out.
/// Repetitions and forks of the sender send the same time.
struct RunStart {
  RunFacts facts;
  std::optional<std::int64_t> time;
  Nanoseconds fraction{};
};

/// One run of one user, as its processes report it. Writer thread only.
///
/// A run is over when each of its processes has stopped or is gone. Its status is the worst of theirs:
/// aborted, then lost, then success.
///
/// A process is lost if it sent a run_start of its own and is gone without a run_stop. A process that only
/// sends values, or that has a leader (Member::leader), may end without a run_stop.
///
/// A process that repeats the run_start of a lost one replaces it if it is still alive, as after the fork of
/// a daemon. If only such processes are left, a process that is not their descendant is the next attempt. The
/// processes that are left are the data loaders of a killed rank.
///
/// A generation is a set of overlapping processes: each joined before the last of the others was gone. Ranks
/// that start and end at different times, or join late, are thus one generation. The next generation is a
/// restart, and the steps that it repeats are lost.
class Run {
 public:
  using IsGone = std::function<bool(const Member&)>;

  /// `label`: the name on the page. `now`: the time of the first message.
  Run(std::string label, const RunSeries& made, const Moment& now)
      : cells(made),
        label_(std::move(label)),
        series_(made),
        start_(now),
        heard_(now),
        last_update_(now),
        last_live_(now.elapsed) {
    for (std::size_t i = 0; i < figures_.size(); ++i) figures_[i] = series_.add(*kFigures[i]);
    for (std::size_t i = 0; i < stops_.size(); ++i) {
      const Labels labels = series_.labels().with({{"status", std::string(kStatuses[i])}});
      stops_[i] = series_.add(catalog::ml_run_stop_timestamp, labels);
    }
  }

  const std::string& label() const noexcept { return label_; }
  const std::vector<Member>& members() const noexcept { return members_; }
  Member* find(const SenderId& id) noexcept {
    const auto found = std::ranges::find(members_, id, &Member::id);
    return found == members_.end() ? nullptr : &*found;
  }

  /// Adds the process. Remove the members that are gone first.
  Member& join(const SenderId& id, const SenderFacts& facts) {
    const auto in_facts = [&](const Member& member) {
      return std::ranges::find(facts.ancestors, member.id.pid) != facts.ancestors.end();
    };
    const auto ancestor = std::ranges::find_if(members_, in_facts);
    std::optional<SenderId> leader;
    if (ancestor != members_.end()) {
      leader = ancestor->leader ? ancestor->leader : ancestor->id;
    } else if (std::ranges::all_of(members_, &Member::orphaned)) {
      take([](const Member&) { return true; }, false);
    }
    if (is_abandoned()) {  // the run continues
      stop_.reset();
      worst_.reset();
    }
    Member* member = find(id);
    if (member == nullptr) {
      if (members_.empty()) begin_generation();
      member = &members_.emplace_back();
      member->id = id;
    }
    member->leader = leader;
    return *member;
  }

  /// A message arrived at `now` about an event at `at` (MLLOG lines have their own time).
  void heard(const Moment& now, const Moment& at) noexcept {
    last_live_ = now.elapsed;
    last_update_ = at;
  }
  /// CLOCK_BOOTTIME of the last message.
  Nanoseconds last_heard() const noexcept { return last_update_.elapsed; }

  /// Removes the members that are gone. With `up_to_alive`, stops at the first one that is not, so that one
  /// check is enough for a run with a live process.
  void remove(const IsGone& is_gone, const Moment& now, bool up_to_alive = false) {
    for (const Member& member : take(is_gone, up_to_alive)) left(member, now);
    stop_if_over();
  }

  /// Marks a run with live processes as in use, so that it does not expire. Sums what each process has.
  void tick(const Moment& now) noexcept {
    if (is_live()) last_live_ = now.elapsed;
    for (Cell& cell : cells.all()) {
      if (cell.word().shape == Shape::memory) cell.hold(memory(cell.choice()[0]));
    }
  }

  /// The run has had no live process for `retention`.
  bool is_expired(const Moment& now, Nanoseconds retention) const noexcept {
    return !is_live() && now.elapsed - last_live_ >= retention;
  }
  /// Each process of the run has stopped or is gone, and at least one stopped or was lost.
  bool is_over() const noexcept { return stop_.has_value(); }
  /// No process is left, and the run did not end with success. Processes of another workload may continue it.
  bool is_abandoned() const noexcept { return members_.empty() && !has_succeeded(); }

  /// Returns the processes that have not sent run_stop and whose leader has not sent it either.
  std::vector<SenderId> working() const {
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

  /// The earliest run_start is the start, until the run has stopped and starts again.
  void started(Member& member, const RunStart& said, const SenderFacts& facts, const Moment& at) {
    const bool repeats = member.announced && said.time && said.time == member.announced_at;
    if (!repeats) {
      const Moment start = said.time ? bounded_start(said, facts.began, at) : at;
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

  void stopped(Member& member, bool success, const Moment& at) {
    member.stopped = true;
    member.end = success ? End::success : End::aborted;
    if (member.leader) return;
    ended(member.end, at);
    stop_.reset();
    stop_if_over();
  }

  /// A metric of any kind arrived. Only a generation that worked can be restarted, which excludes a launcher
  /// that announces the run and ends.
  void worked() noexcept { worked_ = true; }
  void at_step(Member& member, double step) noexcept {
    member.step = step;
    highest_ = std::max(highest_.value_or(step), step);
    const double start = std::max(0.0, step - member.counted_steps);
    member.start = std::min(member.start.value_or(start), start);
    update_step();
  }
  /// The first step of a new generation is not known yet.
  bool is_unsettled() const noexcept { return resumes_.has_value(); }
  /// Call after the last line of each datagram; see Message::finish().
  void settle(Member& member) noexcept {
    if (!resumes_ || !member.step) return;
    const double start = std::min(*member.start, std::max(0.0, *member.step - member.counted_steps));
    lost_steps_ += std::max(0.0, *resumes_ - start);
    resumes_.reset();
  }
  /// A `restart` event. Every rank sends one, so the highest count of one member applies. The first event of
  /// a new generation announces the restart that is already counted.
  void announced_restart(Member& member) noexcept {
    if (++member.restarts <= announced_restarts_) return;
    announced_restarts_ = member.restarts;
    restarts_ += 1;
  }

  /// Returns nullptr if there is no such evaluation yet.
  Evaluation* find_evaluation(std::string_view metric) noexcept {
    const auto found = std::ranges::find(evaluations_, metric, &Evaluation::metric);
    return found == evaluations_.end() ? nullptr : &*found;
  }
  Evaluation& add_evaluation(std::string metric) {
    return evaluations_.emplace_back(std::move(metric), series_);
  }
  std::size_t evaluations() const noexcept { return evaluations_.size(); }

  /// Returns how many of the samples processed so far (by MLLOG) are new. Samples that a restart repeats are
  /// not new.
  double new_samples(double so_far) noexcept {
    const double before = std::exchange(samples_, std::max(samples_, so_far));
    return samples_ - before;
  }

  /// Writes all values into their slots.
  void show(const Moment& now) const noexcept {
    const Moment& end = stop_ ? stop_->time : members_.empty() ? last_update_ : now;
    const double run_time = std::max(0.0, seconds_between(start_, end));
    const std::optional<double> figures[] = {
        to_seconds(start_.unix), run_time, to_seconds(last_update_.unix), restarts_, lost_steps_, step_};
    for (std::size_t i = 0; i < figures_.size(); ++i) figures_[i].show(figures[i]);
    for (std::size_t i = 0; i < stops_.size(); ++i) {
      const bool is_so = stop_ && static_cast<std::size_t>(stop_->end) == i;
      stops_[i].show(is_so ? std::optional(to_seconds(stop_->time.unix)) : std::nullopt);
    }
    const bool is_late = heard_.elapsed - start_.elapsed > kLate;
    for (const Evaluation& evaluation : evaluations_) evaluation.show(start_, is_late);
    cells.show();
  }

  /// A line with `name`, and the lines of its parts. Users::restore_run() reads the first fields.
  void save(RecordWriter& out, std::string_view name) const {
    out.begin("run")(name, label_, workload, *this);
    for (std::size_t i = kFactsOfRunLine; i < kFactCount; ++i) {
      if (!facts_[i].empty()) out.begin("fact")(to_string(static_cast<Fact>(i)), facts_[i]);
    }
    out.begin("progress")(worked_, step_, highest_, resumes_, announced_restarts_, restarts_, lost_steps_);
    for (const Member& member : members_) {
      out.begin("member")(member);
      if (std::ranges::none_of(member.memory, &std::optional<double>::has_value)) continue;
      out.begin("memory");
      for (const std::optional<double>& part : member.memory) out(part);
    }
    cells.save(out);
    for (const Evaluation& each : evaluations_) out.begin("evaluation")(each.metric(), each);
  }

  template <class Fields>
  friend void fields(Fields& f, Run& run) {
    f(run.series, run.announced_, run.samples_).elapsed(run.last_live_);
    f(run.start_, run.heard_, run.ended_, run.last_update_);
    std::optional<End> end;
    Moment time{};
    if (run.stop_) std::tie(time, end) = std::tie(run.stop_->time, run.stop_->end);
    with_number(f, run.worst_);
    with_number(f, end);
    f(time);
    RunFacts facts = run.facts_;
    for (std::size_t i = 0; i < kFactsOfRunLine; ++i) f(facts[i]);
    if constexpr (Fields::kReads) {
      if (end) run.stop_ = Stop{time, *end};
      for (std::string& fact : facts) fact = label_text(fact);
      run.note_facts(facts);
    }
  }

  /// Reads one of the lines that follow that of the run. Returns false if it is of another kind.
  bool restore_line(RecordReader& in) {
    const std::string_view kind = in.kind();
    if (kind == "progress") {
      in(worked_, step_, highest_, resumes_, announced_restarts_, restarts_, lost_steps_);
    } else if (kind == "member") {
      const auto member = in.take<Member>();
      in.check(find(member.id) == nullptr);
      members_.push_back(member);
    } else if (kind == "memory" && !members_.empty()) {
      for (std::optional<double>& part : members_.back().memory) in(part);
    } else if (kind == "fact") {
      restore_fact(in);
    } else if (kind == "custom") {
      cells.restore_custom(in);
    } else if (kind == "evaluation") {
      in(add_evaluation(in.take<std::string>()));
    } else {
      return false;
    }
    return true;
  }

  Workload workload;  ///< of the run's processes; may be unknown
  Cells cells;
  std::size_t series = 0;  ///< charged to the quotas

 private:
  struct Stop {
    Moment time;
    End end;
  };

  // The first facts are in the line of the run; the others have lines of their own.
  static constexpr std::size_t kFactsOfRunLine = 3;
  static constexpr const MetricDescriptor* kFigures[] = {
      &catalog::ml_run_start_timestamp, &catalog::ml_run_time,   &catalog::ml_last_update_timestamp,
      &catalog::ml_run_restarts,        &catalog::ml_lost_steps, &catalog::ml_step};
  /// The time of a run_start has whole seconds.
  static constexpr Nanoseconds kPrecision = std::chrono::seconds(1);
  /// If a run's first message arrives this long after its start, the run may have had evaluations before.
  static constexpr Nanoseconds kLate = std::chrono::seconds(2);

  /// Converts the time of a start to an instant that is not after `now`.
  static Moment moment_of(std::int64_t time, const Moment& now, Nanoseconds fraction = {}) noexcept {
    if (time > now.unix / kPrecision) return now;
    return now.at(std::min(kPrecision * std::max<std::int64_t>(time, 0) + fraction, now.unix));
  }

  /// Returns whether the process began after the start that it reports, beyond the precision of the start.
  static bool is_before(const Moment& start, std::optional<Nanoseconds> began) noexcept {
    return began && start.elapsed + kPrecision < *began;
  }

  /// The start of a run that a process reports with a time. It is not after `now` and not before the process
  /// began (the machine, if `began` is unknown).
  static Moment bounded_start(const RunStart& said, std::optional<Nanoseconds> began,
                              const Moment& now) noexcept {
    const Nanoseconds earliest = began.value_or(Nanoseconds(0));
    const Moment start = moment_of(*said.time, now, said.fraction);
    if (!is_before(start, earliest)) return start;
    return {earliest, now.unix - (now.elapsed - earliest)};
  }

  bool has_succeeded() const noexcept { return stop_ && stop_->end == End::success; }

  /// Some member without a leader, except `besides`, has not sent run_stop.
  bool is_live(const Member* besides = nullptr) const noexcept {
    return std::ranges::any_of(members_, [&](const Member& member) {
      return !member.stopped && !member.leader && &member != besides;
    });
  }

  /// The generation after a run that has ended is no restart.
  void begin_generation() noexcept {
    const bool restarted = worked_ && !stop_;
    if (restarted) restarts_ += 1;
    announced_restarts_ = restarted ? 1 : 0;
    resumes_ = restarted ? highest_ : std::nullopt;
    highest_.reset();
    worked_ = false;
  }

  /// Removes and returns the members that are gone.
  std::vector<Member> take(const IsGone& is_gone, bool up_to_alive) {
    std::vector<Member> gone;
    const auto goes = [&](const Member& member) {
      if (!is_gone(member)) return false;
      gone.push_back(member);
      return true;
    };
    if (up_to_alive) {
      while (!members_.empty() && goes(members_.back())) members_.pop_back();
    } else {
      std::erase_if(members_, goes);
    }
    if (!gone.empty()) update_step();
    return gone;
  }

  /// The members that `gone` led lose their leader, or count as stopped if it stopped.
  void left(const Member& gone, const Moment& now) {
    if (gone.leader) return;
    bool is_followed = false;
    for (Member& other : members_) {
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

  void ended(End end, const Moment& now) noexcept {
    worst_ = std::max(worst_.value_or(end), end);
    ended_ = now;
  }

  void stop_if_over() noexcept {
    if (!stop_ && worst_ && !is_live()) stop_ = Stop{ended_, *worst_};
  }

  /// Other ranks may start after the first rank has stopped with success. Their start is then older than that
  /// stop, or some rank has not stopped yet. A process that has not stopped only repeats its start.
  bool begins_anew(const Member& member, const RunStart& said) const noexcept {
    if (is_live(&member)) return false;
    if (member.stopped && said.time && member.announced_at) return *said.time > *member.announced_at;
    if (member.announced && !member.stopped) return false;
    return has_succeeded() && !(said.time && *said.time < stop_->time.unix / kPrecision);
  }

  /// The run ended with success and starts again: its steps start from 0.
  void begin_anew(const Moment& start, const Moment& now) noexcept {
    start_ = start;
    heard_ = now;
    stop_.reset();
    worst_.reset();
    samples_ = 0;
    facts_ = {};
    info_ = OwnedSlot();
    step_.reset();
    highest_.reset();
    for (Member& member : members_) {
      member.step.reset();
      member.start.reset();
      member.counted_steps = 0;
    }
    for (Evaluation& evaluation : evaluations_) evaluation.forget();
  }

  /// A fork repeats the run_start of its parent, with a time from before the fork began. If the fork began
  /// within the same second, only its ancestry identifies it (see join()).
  void find_leader(Member& member) noexcept {
    const auto same_start = [&](const Member& other) {
      return &other != &member && other.announced && other.announced_at &&
             other.announced_at == member.announced_at;
    };
    const Member* const leader = member.leader ? find(*member.leader) : nullptr;
    if (leader != nullptr && same_start(*leader)) return;
    member.leader.reset();
    for (Member& other : members_) {
      if (!same_start(other) || other.leader) continue;
      if (member.inherits && !other.inherits) member.leader = other.id;
      if (other.inherits && !member.inherits) other.leader = member.id;
    }
  }

  /// Some ranks may report no facts, or fewer: a known fact stays until a process reports another.
  void note_facts(const RunFacts& facts) {
    RunFacts known = facts_;
    for (std::size_t i = 0; i < kFactCount; ++i) {
      if (!facts[i].empty()) known[i] = facts[i];
    }
    if (known == facts_) return;
    facts_ = std::move(known);
    info_ = series_.add(catalog::ml_run_info, series_.labels().with(labels_of(facts_)));
    info_.show(1);
  }

  void restore_fact(RecordReader& in) {
    Fact fact{};
    in.named(fact, kFactNames);
    const std::string text = in.take<std::string>();
    in.check(is_acceptable(fact, text));
    if (in.failed()) return;
    RunFacts facts;
    facts[static_cast<std::size_t>(fact)] = text;
    note_facts(facts);
  }

  void update_step() noexcept {
    std::optional<double> highest;
    for (const Member& member : members_) {
      if (member.step) highest = std::max(highest.value_or(*member.step), *member.step);
    }
    if (highest) step_ = highest;
  }

  /// The sum over the processes that have not sent run_stop; nullopt if none of them has the value.
  std::optional<double> memory(std::size_t state) const noexcept {
    std::optional<double> sum;
    if (state >= kMemoryStates) return sum;
    for (const Member& member : members_) {
      const std::optional<double> part = member.stopped ? std::nullopt : member.memory[state];
      if (part) sum = sum.value_or(0) + *part;
    }
    return sum;
  }

  std::string label_;
  RunSeries series_;
  std::array<OwnedSlot, std::size(kFigures)> figures_;  ///< series without further labels
  std::array<OwnedSlot, std::size(kStatuses)> stops_;   ///< by End
  OwnedSlot info_;                                      ///< none until a process reports facts
  Moment start_;
  Moment heard_;              ///< time of the first message
  bool announced_ = false;    ///< a run_start arrived
  std::optional<End> worst_;  ///< worst end of the processes that have ended so far
  Moment ended_;              ///< end of the last of these processes
  std::optional<Stop> stop_;  ///< set when the run is over
  Moment last_update_;
  Nanoseconds last_live_;
  RunFacts facts_;
  std::vector<Evaluation> evaluations_;
  double samples_ = 0;

  std::vector<Member> members_;
  bool worked_ = false;                   ///< this generation, see worked()
  std::optional<double> step_;            ///< highest of the members; stays after they are gone
  std::optional<double> highest_;         ///< highest of this generation
  std::optional<double> resumes_;         ///< highest of the last generation, until this one's start is known
  std::uint32_t announced_restarts_ = 0;  ///< highest counted number of `restart` events of one member
  double restarts_ = 0;
  double lost_steps_ = 0;
};

}  // namespace gpumeter::jobs
