#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/jobs/model/cells.hpp"
#include "collectors/jobs/model/evaluation.hpp"
#include "collectors/jobs/model/run_progress.hpp"
#include "collectors/jobs/wire/run_facts.hpp"

namespace gpumeter::jobs {

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

  /// A line with `name`, and the lines of its parts. UserRuns::restore() reads the first fields.
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
