#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/jobs/model/job_series.hpp"

namespace gpumeter::jobs {

/// One evaluated metric of a run: its last and best value, its target, and when that was first met.
class Evaluation {
 public:
  explicit Evaluation(std::string metric);

  const std::string& metric() const noexcept { return metric_; }
  /// From the first line that says so on; until then lower_is_usual() of its name holds.
  void set_direction(bool lower_is_better) noexcept;
  void set_target(double target) noexcept;
  void evaluated(double value, const Moment& now) noexcept;
  /// The run began anew under the same name.
  void forget() noexcept;
  /// `is_late`: the run was not heard of from its start on. If its first evaluation meets the target, one
  /// before it may have done so first: then the time to solution is unknown, and absent.
  void write(const std::vector<Label>& labels, const Moment& start, bool is_late,
             std::vector<JobSeries>& out) const;

 private:
  bool reaches(double value, double goal) const noexcept {
    return lower_is_better_ ? value <= goal : value >= goal;
  }
  void judge() noexcept;
  bool is_time_known(const Moment& start, bool is_late) const noexcept;

  std::string metric_;
  bool lower_is_better_;
  std::optional<double> first_;
  std::optional<double> value_;
  std::optional<double> best_;
  std::optional<double> target_;
  Moment best_time_;              ///< of the first evaluation that gave best_
  std::optional<Moment> solved_;  ///< of the first evaluation that met target_
};

/// Whether a metric of this name is the better the lower, unless the job says otherwise: its last word is one
/// of loss, perplexity, error, wer, cer, rmse, mse and mae, or its last two are error_rate. Any thread.
bool lower_is_usual(std::string_view metric);

}  // namespace gpumeter::jobs
