#include "collectors/jobs/evaluation.hpp"

#include "collectors/api/catalog.hpp"

namespace gpumeter::jobs {

void Evaluation::set_direction(bool lower_is_better) noexcept {
  if (lower_is_better == lower_is_better_) return;
  lower_is_better_ = lower_is_better;
  best_ = value_;  // the best by the other direction is of no use
  solved_.reset();
  judge();
}

void Evaluation::set_target(double target) noexcept {
  if (target_ == target) return;
  target_ = target;
  solved_.reset();
  judge();
}

void Evaluation::evaluated(double value, const Moment& now) noexcept {
  value_ = value;
  if (best_ && reaches(*best_, value)) return;
  best_ = value;
  best_time_ = now;
  judge();
}

/// A target that comes after the evaluations is met by the best of them.
void Evaluation::judge() noexcept {
  if (!solved_ && best_ && target_ && reaches(*best_, *target_)) solved_ = best_time_;
}

void Evaluation::forget() noexcept {
  value_.reset();
  best_.reset();
  target_.reset();
  solved_.reset();
}

void Evaluation::write(const std::vector<Label>& labels, const Moment& start,
                       std::vector<JobSeries>& out) const {
  std::vector<Label> all = labels;
  all.push_back({"metric", metric_});
  if (value_) out.push_back({{&catalog::ml_eval_value, all}, "", *value_});
  if (best_) out.push_back({{&catalog::ml_eval_best_value, all}, "", *best_});
  if (target_) out.push_back({{&catalog::ml_target_value, all}, "", *target_});
  if (solved_) out.push_back({{&catalog::ml_time_to_solution, all}, "", seconds_between(start, *solved_)});
}

}  // namespace gpumeter::jobs
