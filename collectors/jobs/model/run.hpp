#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "collectors/jobs/model/cells.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"

namespace gpumeter::jobs {

/// How a process of a run ended, from best to worst.
enum class End : std::uint8_t { success, lost, aborted };

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

/// The processes of a run and their step. A generation is a set of overlapping processes: each joined before
/// the last of the others was gone. Ranks that start and end at different times, or join late, are thus one
/// generation. The next generation is a restart, and the steps that it repeats are lost.
class RunProgress {
 public:
  Member* find(const SenderId& id) noexcept;
  /// Adds the process. Remove the members that are gone first. `completed`: the run has ended, so a new
  /// generation is no restart.
  Member& join(const SenderId& id, bool completed);
  /// Removes and returns the members for which `is_gone` is true. With `up_to_alive`, stops at the first
  /// member that is not gone, so that one check is enough for a run with a live process.
  std::vector<Member> remove(const std::function<bool(const Member&)>& is_gone, bool up_to_alive = false);
  const std::vector<Member>& members() const noexcept { return members_; }
  std::vector<Member>& members() noexcept { return members_; }
  /// Returns whether some member without a leader, except `besides`, has not sent run_stop.
  bool is_live(const Member* besides = nullptr) const noexcept;

  /// Returns the processes that have not sent run_stop and whose leader has not sent it either.
  std::vector<SenderId> working() const;

  /// The run ended with success and starts again: its steps start from 0.
  void begin_anew() noexcept;
  /// A metric of any kind arrived. Only a generation that worked can be restarted, which excludes a launcher
  /// that announces the run and ends.
  void worked() noexcept { worked_ = true; }
  void at_step(Member& member, double step) noexcept;
  /// The first step of a new generation is not known yet.
  bool is_unsettled() const noexcept { return resumes_.has_value(); }
  /// Call after the last line of each datagram; see Message::finish().
  void settle(Member& member) noexcept;
  /// A `restart` event. Every rank sends one, so the highest count of one member applies. The first event of
  /// a new generation announces the restart that is already counted.
  void announced_restart(Member& member) noexcept;

  std::optional<double> step() const noexcept { return step_; }
  double restarts() const noexcept { return restarts_; }
  double lost_steps() const noexcept { return lost_steps_; }

  /// The sum over the processes that have not sent run_stop; nullopt if none of them has the value.
  std::optional<double> memory(std::size_t state) const noexcept;

  /// A line, and one or two for each member.
  void save(RecordWriter& out) const;
  void restore(SavedReader& in);
  void restore_member(SavedReader& in);
  /// The second line of the last member.
  void restore_memory(SavedReader& in);

 private:
  void begin_generation(bool completed) noexcept;
  void update_step() noexcept;

  std::vector<Member> members_;
  bool worked_ = false;
  std::optional<double> step_;     ///< highest of the members; stays after they are gone
  std::optional<double> highest_;  ///< highest of this generation
  std::optional<double> resumes_;  ///< highest of the last generation, until this one's start is known
  std::uint32_t announced_ = 0;    ///< highest counted number of `restart` events of one member
  double restarts_ = 0;
  double lost_steps_ = 0;
};

/// A run_start. `time`: the event's own time (`d:`) in Unix seconds, and `fraction` what they leave out.
/// Repetitions and forks of the sender send the same time.
struct RunStart {
  RunFacts facts;
  std::optional<std::int64_t> time;
  Nanoseconds fraction{};
};

/// Series that a run has in addition to its cells and evaluations: start, stop, run time, last update,
/// restarts, lost steps, step, info. The quotas are charged for all of them when the run is created.
inline constexpr std::size_t kSeriesOfEveryRun = 8;

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
class Run {
 public:
  /// `label`: the name on the page. `now`: the time of the first message.
  Run(std::string label, const RunSeries& made, const Moment& now);

  const std::string& label() const noexcept { return label_; }

  /// Adds the process. Remove the members that are gone first.
  Member& join(const SenderId& id, const SenderFacts& facts);
  /// A message arrived at `now` about an event at `at` (MLLOG lines have their own time).
  void heard(const Moment& now, const Moment& at) noexcept;
  /// CLOCK_BOOTTIME of the last message.
  Nanoseconds last_heard() const noexcept { return last_update_.elapsed; }
  /// Removes the members that are gone. With `up_to_alive`, stops at the first one that is not.
  void remove(const std::function<bool(const Member&)>& is_gone, const Moment& now, bool up_to_alive = false);
  /// Marks a run with live processes as in use, so that it does not expire. Sums what each process has.
  void tick(const Moment& now) noexcept;
  /// The run has had no live process for `retention`.
  bool is_expired(const Moment& now, Nanoseconds retention) const noexcept;
  /// Each process of the run has stopped or is gone, and at least one stopped or was lost.
  bool is_over() const noexcept { return stop_.has_value(); }
  /// No process is left, and the run did not end with success. Processes of another workload may continue it.
  bool is_abandoned() const noexcept;

  /// The earliest run_start is the start, until the run has stopped and starts again.
  void started(Member& member, const RunStart& said, const SenderFacts& facts, const Moment& at);
  void stopped(Member& member, bool success, const Moment& at);

  /// Returns nullptr if there is no such evaluation yet.
  Evaluation* find_evaluation(std::string_view metric) noexcept;
  Evaluation& add_evaluation(std::string metric) {
    return evaluations_.emplace_back(std::move(metric), series_);
  }
  std::size_t evaluations() const noexcept { return evaluations_.size(); }

  /// Returns how many of the samples processed so far (by MLLOG) are new. Samples that a restart repeats are
  /// not new.
  double new_samples(double so_far) noexcept;

  /// Writes all values into their slots.
  void show(const Moment& now) const noexcept;

  /// A line with `name`, and the lines of its parts. User::restore_run() reads the first fields.
  void save(RecordWriter& out, std::string_view name) const;
  void restore(SavedReader& in);
  void restore_fact(SavedReader& in);

  Workload workload;  ///< of the run's processes; may be unknown
  Cells cells;
  RunProgress progress;
  std::size_t series = 0;  ///< charged to the quotas

 private:
  struct Stop {
    Moment time;
    End end;
  };

  void note_facts(const RunFacts& facts);
  void find_leader(Member& member) noexcept;
  void begin_anew(const Moment& start, const Moment& now) noexcept;
  bool begins_anew(const Member& member, const RunStart& said) const noexcept;
  void left(const Member& member, const Moment& now);
  void ended(End end, const Moment& now) noexcept;
  void stop_if_over() noexcept;
  double run_time(const Moment& now) const noexcept;

  std::string label_;
  RunSeries series_;
  std::array<OwnedSlot, 6> figures_;  ///< series without further labels
  std::array<OwnedSlot, 3> stops_;    ///< by End
  OwnedSlot info_;                    ///< none until a process reports facts
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
};

}  // namespace gpumeter::jobs
