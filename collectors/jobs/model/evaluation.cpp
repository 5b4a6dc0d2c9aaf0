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

Evaluation::Evaluation(std::string metric, const RunSeries& run)
    : metric_(std::move(metric)), lower_is_better_(lower_is_usual(metric_)) {
  const Labels labels = run.labels().with({{"metric", metric_}});
  slots_ = {run.add(catalog::ml_eval_value, labels), run.add(catalog::ml_eval_best_value, labels),
            run.add(catalog::ml_target_value, labels), run.add(catalog::ml_time_to_solution, labels)};
}

void Evaluation::set_direction(bool lower_is_better) noexcept {
  if (lower_is_better == lower_is_better_) return;
  lower_is_better_ = lower_is_better;
  seen_.best = seen_.value;  // the old best value was chosen by the other direction
  seen_.solved.reset();
  judge();
}

void Evaluation::set_target(double target) noexcept {
  if (seen_.target == target) return;
  seen_.target = target;
  seen_.solved.reset();
  judge();
}

void Evaluation::evaluated(double value, const Moment& now) noexcept {
  seen_.value = value;
  if (!seen_.first) seen_.first = value;
  if (seen_.best && reaches(*seen_.best, value)) return;
  seen_.best = value;
  seen_.best_time = now;
  judge();
}

/// A target that arrives after the evaluations is compared with the best of them.
void Evaluation::judge() noexcept {
  if (!seen_.solved && seen_.best && seen_.target && reaches(*seen_.best, *seen_.target)) {
    seen_.solved = seen_.best_time;
  }
}

/// If the evaluation is older than the start, it belongs to another run or the start was missed. The time is
/// then unknown too.
std::optional<double> Evaluation::time_to_solution(const Moment& start, bool is_late) const noexcept {
  if (!seen_.solved || seen_.solved->elapsed < start.elapsed) return std::nullopt;
  if (is_late && reaches(*seen_.first, *seen_.target)) return std::nullopt;
  return seconds_between(start, *seen_.solved);
}

void Evaluation::show(const Moment& start, bool is_late) const noexcept {
  slots_[0].show(seen_.value);
  slots_[1].show(seen_.best);
  slots_[2].show(seen_.target);
  slots_[3].show(time_to_solution(start, is_late));
}

}  // namespace gpumeter::jobs
