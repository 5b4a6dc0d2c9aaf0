#pragma once

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

/// What a run_start may say of the run, as the labels of ml_run_info.
struct RunFacts {
  std::string_view framework;
  std::string_view version;
  std::string_view model;
};

/// A run_start. `time` is its own time (`d:`) in Unix seconds: the same in each repetition, and in a process
/// that was forked from the one that sent it first.
struct RunStart {
  RunFacts facts;
  std::optional<std::int64_t> time;
};

/// Series that each run has or may have in addition to its cells and evaluations: start, stop, run time, last
/// update, restarts, lost steps, step, info. They are taken off the quotas when the run is made.
inline constexpr std::size_t kSeriesOfEveryRun = 8;
/// Value, best, target, time to solution.
inline constexpr std::size_t kSeriesOfEvaluation = 4;

/// One run of one user, as its processes report it. Writer thread only.
///
/// A run is over when each of its processes has stopped or is gone. Its status is the worst of theirs:
/// aborted, then lost, then success. A process is lost if it is gone without a run_stop, provided that it
/// sent a run_start of its own: one that only sends values, and one that takes part for another
/// (Member::leader), may end without a run_stop. If a process is gone without a run_stop and one that repeats
/// its run_start lives, the latter takes its place, as after the fork of a daemon. Where only such are left,
/// a process that is not forked from them is the next attempt: they are a killed rank's data loaders.
class Run {
 public:
  /// `label` is the page's name of it, `now` when it was first heard of.
  Run(std::string label, const Moment& now)
      : label_(std::move(label)), start_(now), heard_(now), last_update_(now), last_live_(now.elapsed) {}

  const std::string& label() const noexcept { return label_; }

  /// The process, as a member from now on; members that are gone should be out by then.
  Member& join(const SenderId& id, const SenderFacts& facts);
  /// A message came `now`, of something that was `at` (MLLOG lines have their own time).
  void heard(const Moment& now, const Moment& at) noexcept;
  /// Takes out the members that are gone, up to the first that is there where `up_to_alive`.
  void remove(const std::function<bool(const Member&)>& is_gone, const Moment& now, bool up_to_alive = false);
  /// The time goes on: a run with live processes is kept.
  void tick(const Moment& now) noexcept;
  /// For `retention` no process of it has been live.
  bool is_expired(const Moment& now, Nanoseconds retention) const noexcept;
  /// Each of its processes has stopped or is gone, and one of them stopped or was lost.
  bool is_over() const noexcept { return stop_.has_value(); }
  /// No process is left, and it did not end well: processes of another workload may go on with it.
  bool is_abandoned() const noexcept;

  /// The earliest run_start is the start, until the run has stopped and starts once more.
  void started(Member& member, const RunStart& said, const SenderFacts& facts, const Moment& at);
  void stopped(Member& member, bool success, const Moment& at);

  /// nullptr: not there yet.
  Evaluation* find_evaluation(std::string_view metric) noexcept;
  Evaluation& add_evaluation(std::string metric) { return evaluations_.emplace_back(std::move(metric)); }
  std::size_t evaluations() const noexcept { return evaluations_.size(); }

  /// MLLOG tells how many samples were gone through so far; gives how many of them are new. Those of a
  /// restart that are gone through again are not.
  double new_samples(double so_far) noexcept;

  void write(const std::vector<Label>& labels, const Moment& now, std::vector<JobSeries>& out) const;

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
  void write_info(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;

  std::string label_;
  Moment start_;
  Moment heard_;              ///< its first message
  bool announced_ = false;    ///< by a run_start
  std::optional<End> worst_;  ///< of the processes that ended so far
  Moment ended_;              ///< when the last of them did
  std::optional<Stop> stop_;  ///< it is over
  Moment last_update_;
  Nanoseconds last_live_;
  std::vector<Label> facts_;
  std::vector<Evaluation> evaluations_;
  double samples_ = 0;
};

/// When a run started whose start was said to be at `time`, by a process that began at `began`: not after
/// now, and not before the process (where that is not known, the machine) began.
Moment bounded_start(std::int64_t time, std::optional<Nanoseconds> began, const Moment& now) noexcept;

}  // namespace gpumeter::jobs
