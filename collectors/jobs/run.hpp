#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/jobs/cells.hpp"
#include "collectors/jobs/evaluation.hpp"
#include "collectors/jobs/run_progress.hpp"

namespace gpumeter::jobs {

/// What a run_start may say of the run, as the labels of ml_run_info.
struct RunFacts {
  std::string_view framework;
  std::string_view version;
  std::string_view model;
};

/// Series that each run has or may have beside its cells and evaluations: start, stop, run time, last
/// update, restarts, lost steps, step, info. They are taken off the quotas when the run is made.
inline constexpr std::size_t kSeriesOfEveryRun = 8;
/// Value, best, target, time to solution.
inline constexpr std::size_t kSeriesOfEvaluation = 4;

/// One run of one user: what its processes told, put together. Writer thread only.
class Run {
 public:
  explicit Run(const Moment& now) : start_(now), last_update_(now), last_live_(now.elapsed) {}

  /// A message of the process came `now`, of something that was `at` (MLLOG lines have their own time).
  /// `is_gone` says which members are not there any more; it is asked only where the process is new.
  Member& heard(const SenderId& id, const Moment& now, const Moment& at,
                const std::function<bool(const Member&)>& is_gone);
  /// The time goes on: a run with live processes is kept.
  void tick(const Moment& now) noexcept;
  /// So long that nothing is known of a process of it.
  bool is_over(const Moment& now, Nanoseconds retention) const noexcept;

  /// The first run_start is the start, until the run has stopped well and starts once more.
  void started(Member& member, const RunFacts& facts, const Moment& now);
  /// The last run_stop is the stop; once one process aborted, the run did.
  void stopped(Member& member, bool success, const Moment& now) noexcept;

  /// nullptr: not there yet.
  Evaluation* find_evaluation(std::string_view metric) noexcept;
  Evaluation& add_evaluation(std::string metric) { return evaluations_.emplace_back(std::move(metric)); }
  std::size_t evaluations() const noexcept { return evaluations_.size(); }

  /// MLLOG tells how many samples were gone through so far; gives how many of them are new. Those of a
  /// restart that are gone through again are not.
  double new_samples(double so_far) noexcept;

  void write(const std::vector<Label>& labels, const Moment& now, std::vector<JobSeries>& out) const;

  Cells cells;
  RunProgress progress;
  std::size_t series = 0;  ///< taken off the quotas

 private:
  struct Stop {
    Moment time;
    bool success;
  };

  void begin_anew(const Moment& now) noexcept;
  bool may_begin_anew(const Member& member) const noexcept;
  double run_time(const Moment& now) const noexcept;
  void write_info(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;

  Moment start_;
  bool announced_ = false;  ///< by a run_start
  std::optional<Stop> stop_;
  Moment last_update_;
  Nanoseconds last_live_;
  std::vector<Label> facts_;
  std::vector<Evaluation> evaluations_;
  double samples_ = 0;
};

}  // namespace gpumeter::jobs
