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

namespace gpumeter::jobs {

/// The labels of ml_run_info, as a run_start may give them.
struct RunFacts {
  std::string_view framework;
  std::string_view version;
  std::string_view model;
};

/// A run_start. `time` is its own time (`d:`) in Unix seconds, which is the same in repetitions and in forks
/// of the sender.
struct RunStart {
  RunFacts facts;
  std::optional<std::int64_t> time;
};

/// Series that each run has or may have in addition to its cells and evaluations: start, stop, run time, last
/// update, restarts, lost steps, step, info. They are taken off the quotas when the run is made.
inline constexpr std::size_t kSeriesOfEveryRun = 8;

/// One run of one user, as its processes report it. Writer thread only.
///
/// A run is over when each of its processes has stopped or is gone. Its status is the worst of theirs:
/// aborted, then lost, then success. A process is lost if it sent a run_start of its own and is gone without
/// a run_stop; one that only sends values, or that has a leader (Member::leader), may end without a run_stop.
/// If a process that repeats its run_start lives on, it takes the place of the lost one, as after the fork of
/// a daemon. If only such processes are left, one that is not forked from them is the next attempt: they are
/// the data loaders of a killed rank.
class Run {
 public:
  /// `label`: its name on the page. `now`: when it was first heard of.
  Run(std::string label, const RunSeries& made, const Moment& now);

  const std::string& label() const noexcept { return label_; }

  /// Adds the process. Members that are gone should be removed first.
  Member& join(const SenderId& id, const SenderFacts& facts);
  /// A message arrived `now` about an event `at` (MLLOG lines have their own time).
  void heard(const Moment& now, const Moment& at) noexcept;
  /// Removes the members that are gone; with `up_to_alive` up to the first that is not.
  void remove(const std::function<bool(const Member&)>& is_gone, const Moment& now, bool up_to_alive = false);
  /// Keeps a run with live processes.
  void tick(const Moment& now) noexcept;
  /// It has had no live process for `retention`.
  bool is_expired(const Moment& now, Nanoseconds retention) const noexcept;
  /// Each of its processes has stopped or is gone, and one of them stopped or was lost.
  bool is_over() const noexcept { return stop_.has_value(); }
  /// No process is left, and it did not end well: processes of another workload may continue it.
  bool is_abandoned() const noexcept;

  /// The earliest run_start is the start, until the run has stopped and starts again.
  void started(Member& member, const RunStart& said, const SenderFacts& facts, const Moment& at);
  void stopped(Member& member, bool success, const Moment& at);

  /// nullptr: not there yet.
  Evaluation* find_evaluation(std::string_view metric) noexcept;
  Evaluation& add_evaluation(std::string metric) {
    return evaluations_.emplace_back(std::move(metric), series_);
  }
  std::size_t evaluations() const noexcept { return evaluations_.size(); }

  /// Returns how many of the samples processed so far (by MLLOG) are new. Samples that a restart repeats are
  /// not.
  double new_samples(double so_far) noexcept;

  /// Writes all values into their slots.
  void show(const Moment& now) const noexcept;

  Workload workload;  ///< of its processes, as far as it is known
  Cells cells;
  RunProgress progress;
  std::size_t series = 0;  ///< taken off the quotas

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
  std::array<OwnedSlot, 6> figures_;  ///< those without further labels
  std::array<OwnedSlot, 3> stops_;    ///< by End
  OwnedSlot info_;                    ///< none without facts
  Moment start_;
  Moment heard_;              ///< its first message
  bool announced_ = false;    ///< by a run_start
  std::optional<End> worst_;  ///< of the processes that ended so far
  Moment ended_;              ///< when the last of them did
  std::optional<Stop> stop_;  ///< it is over
  Moment last_update_;
  Nanoseconds last_live_;
  Labels facts_;
  std::vector<Evaluation> evaluations_;
  double samples_ = 0;
};

}  // namespace gpumeter::jobs
