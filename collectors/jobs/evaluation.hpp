#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectors/jobs/job_series.hpp"

namespace gpumeter::jobs {

/// One evaluated metric of a run: its last and best value, its target, and when that was first met.
class Evaluation {
 public:
  explicit Evaluation(std::string metric) : metric_(std::move(metric)) {}

  const std::string& metric() const noexcept { return metric_; }
  /// From the first line that says so on; until then higher is better.
  void set_direction(bool lower_is_better) noexcept;
  void set_target(double target) noexcept;
  void evaluated(double value, const Moment& now) noexcept;
  /// The run began anew under the same name.
  void forget() noexcept;
  void write(const std::vector<Label>& labels, const Moment& start, std::vector<JobSeries>& out) const;

 private:
  bool reaches(double value, double goal) const noexcept {
    return lower_is_better_ ? value <= goal : value >= goal;
  }
  void judge() noexcept;

  std::string metric_;
  bool lower_is_better_ = false;
  std::optional<double> value_;
  std::optional<double> best_;
  std::optional<double> target_;
  Moment best_time_;              ///< of the first evaluation that gave best_
  std::optional<Moment> solved_;  ///< of the first evaluation that met target_
};

}  // namespace gpumeter::jobs
