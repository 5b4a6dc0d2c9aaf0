#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "programs/profiler/settings.hpp"

namespace gpumeter {

struct SampleLine;

}  // namespace gpumeter

namespace gpumeter::profiles {

using jobs::RunName;

/// A condition that holds for a run.
struct Finding {
  std::string condition;
  RunName run;
  std::string reason;    ///< with figures, for the log
  std::string gpu = {};  ///< uuid of the GPU that it is about; empty: all of the run's
};

/// Judges the runs by what the daemon's page shows of them and of their GPUs (ml_run_gpu_info). Each
/// condition compares two readings of counters, `hold` apart. A counter that fell began again, and is not
/// judged.
///
/// thermal_throttling: a GPU of the run was throttled by heat for the share of the time.
/// slow_steps: the mean step of the time is longer than the factor times the median of the run's steps before
/// it, which must be at least kFewestSteps.
/// low_mfu: the model's FLOPs are below the share of the GPUs' dense bf16 peak, as in the rule
/// run:ml_model_flops_utilization:ratio_rate5m. If the peak of one of the GPUs is unknown, so is the share.
///
/// One thread.
class Conditions {
 public:
  static constexpr double kFewestSteps = 20;

  explicit Conditions(Thresholds thresholds) : thresholds_(std::move(thresholds)) {}

  /// Reads the daemon's page and returns what holds as of `now` (CLOCK_MONOTONIC). Call about every 5 s.
  std::vector<Finding> judge(std::string_view page, Nanoseconds now);

 private:
  struct Steps {
    double sum = 0;
    double count = 0;
    std::map<double, double> buckets;  ///< by upper bound; cumulative
  };
  struct Run {
    std::set<std::string> gpus;          ///< by uuid
    std::map<std::string, Steps> steps;  ///< by split
    double flops = 0;
    bool has_flops = false;
  };
  struct Reading {
    Nanoseconds at{};
    std::map<RunName, Run> runs;
    std::map<std::string, double> throttled;  ///< seconds, by uuid
    std::map<std::string, double> peaks;      ///< bf16 operations a second, by uuid
  };

  static Reading read(std::string_view page, Nanoseconds now);
  static void take(Reading& reading, const SampleLine& sample);
  static double median(const Steps& steps);
  void judge_heat(const Reading& before, const Reading& after, std::vector<Finding>& to) const;
  void judge_steps(const Reading& before, const Reading& after, std::vector<Finding>& to) const;
  void judge_mfu(const Reading& before, const Reading& after, std::vector<Finding>& to) const;

  const Thresholds thresholds_;
  std::deque<Reading> readings_;  ///< the oldest first
};

}  // namespace gpumeter::profiles
