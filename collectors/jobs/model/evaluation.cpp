#include "collectors/jobs/model/evaluation.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter::jobs {
namespace {

constexpr std::string_view kSeparators = "_-./: ";

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool lower_is_usual(std::string_view metric) {
  constexpr std::string_view kWords[] = {"loss", "perplexity", "error", "wer", "cer", "rmse", "mse", "mae"};
  constexpr std::string_view kRate = "rate";
  std::string name(metric);
  std::ranges::transform(name, name.begin(), lower);
  std::string_view rest = name;
  const auto last_word = [&] { return rest.substr(rest.find_last_of(kSeparators) + 1); };  // npos + 1 is 0
  if (last_word() != kRate) return std::ranges::find(kWords, last_word()) != std::end(kWords);
  rest.remove_suffix(std::min(kRate.size() + 1, rest.size()));
  return last_word() == "error";
}

Evaluation::Evaluation(std::string metric)
    : metric_(std::move(metric)), lower_is_better_(lower_is_usual(metric_)) {}

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
  if (!first_) first_ = value;
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
  first_.reset();
  value_.reset();
  best_.reset();
  target_.reset();
  solved_.reset();
}

/// An evaluation before the start is of another run's, or the start was not heard: no time is known then
/// either.
bool Evaluation::is_time_known(const Moment& start, bool is_late) const noexcept {
  if (!solved_ || solved_->elapsed < start.elapsed) return false;
  return !is_late || !reaches(*first_, *target_);
}

void Evaluation::write(const std::vector<Label>& labels, const Moment& start, bool is_late,
                       std::vector<JobSeries>& out) const {
  std::vector<Label> all = labels;
  all.push_back({"metric", metric_});
  if (value_) out.push_back({{&catalog::ml_eval_value, all}, Part::value, *value_});
  if (best_) out.push_back({{&catalog::ml_eval_best_value, all}, Part::value, *best_});
  if (target_) out.push_back({{&catalog::ml_target_value, all}, Part::value, *target_});
  if (is_time_known(start, is_late)) {
    out.push_back({{&catalog::ml_time_to_solution, all}, Part::value, seconds_between(start, *solved_)});
  }
}

}  // namespace gpumeter::jobs
