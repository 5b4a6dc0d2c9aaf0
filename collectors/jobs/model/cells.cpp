#include "collectors/jobs/model/cells.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter::jobs {

Cell::Cell(const Word& word, LabelChoice choice, const RunSeries& run) : word_(&word), choice_(choice) {
  const Labels labels = run.labels().with(labels_of(word, choice));
  slots_.reserve(series_of(word));
  if (word.times != nullptr) slots_.push_back(run.add(*word.times, labels));
  if (word.bounds == nullptr) {
    slots_.push_back(run.add(*word.family, labels));
    return;
  }
  buckets_.resize(word.bounds->size() + 1);
  const auto add_bucket = [&](const std::string& bound) {
    slots_.push_back(run.add(*word.family, labels.with({{"le", bound}}), SeriesPart::bucket));
  };
  for (const double bound : *word.bounds) add_bucket(bound_text(bound));
  add_bucket("+Inf");
  slots_.push_back(run.add(*word.family, labels, SeriesPart::sum));
  slots_.push_back(run.add(*word.family, labels, SeriesPart::count));
}

void Cell::add(double value, double weight) noexcept {
  if (word_->shape == Shape::gauge || word_->shape == Shape::size) {
    value_ = value;
    return;
  }
  value_ += value * weight;
  times_ += weight;
  if (buckets_.empty()) return;
  const Bounds& bounds = *word_->bounds;
  const auto bucket = std::ranges::lower_bound(bounds, value) - bounds.begin();
  buckets_[static_cast<std::size_t>(bucket)] += weight;
}

void Cell::hold(std::optional<double> value) noexcept {
  is_held_ = value.has_value();
  value_ = value.value_or(0);
}

void Cell::absorb(const Cell& other) noexcept {
  value_ += other.value_;
  times_ += other.times_;
  std::ranges::transform(buckets_, other.buckets_, buckets_.begin(), std::plus<>());
}

void Cell::show() const noexcept {
  auto slot = slots_.begin();
  if (word_->times != nullptr) (slot++)->show(times_);
  double cumulative = 0;
  for (const double bucket : buckets_) (slot++)->show(cumulative += bucket);
  (slot++)->show(is_held_ ? std::optional(value_) : std::nullopt);
  if (!buckets_.empty()) slot->show(cumulative);
}

Cell* Cells::find(const Word& word, LabelChoice choice) noexcept {
  const auto found = std::ranges::find_if(cells_, [&](const Cell& cell) { return cell.is(word, choice); });
  return found == cells_.end() ? nullptr : &*found;
}

CustomScalar* Cells::find_custom(std::string_view metric) noexcept {
  const auto found = std::ranges::find(customs_, metric, &CustomScalar::metric);
  return found == customs_.end() ? nullptr : &*found;
}

void Cells::add_custom(const std::string& metric, double value) {
  customs_.push_back({metric, value, run_.add(catalog::ml_custom, run_.labels().with({{"metric", metric}}))});
}

void Cells::show() const noexcept {
  for (const Cell& cell : cells_) cell.show();
  for (const CustomScalar& custom : customs_) custom.slot.show(custom.value);
}

std::size_t Cells::series() const noexcept {
  std::size_t series = customs_.size();
  for (const Cell& cell : cells_) series += cell.series();
  return series;
}

void Cells::clear() {
  cells_.clear();
  customs_.clear();
}

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

void Cell::save(RecordWriter& out) const {
  out.begin("cell").text(word_->name).integer(choice_[0]).integer(choice_[1]).number(value_).number(times_);
  for (const double bucket : buckets_) out.number(bucket);
}

void Cell::restore(SavedReader& in) {
  value_ = in.finite();
  times_ = in.finite();
  for (double& bucket : buckets_) bucket = in.finite();
}

void Cells::save(RecordWriter& out) const {
  for (const Cell& cell : cells_) cell.save(out);
  for (const CustomScalar& custom : customs_) out.begin("custom").text(custom.metric).number(custom.value);
}

void Cells::restore_cell(SavedReader& in) {
  const Word* const word = find_word(in.text());
  LabelChoice choice{};
  for (std::size_t i = 0; i < choice.size(); ++i) {
    choice[i] = static_cast<std::uint8_t>(in.integer(0, kNoLabel));
    const ClosedLabel* const label = word != nullptr ? word->labels[i] : nullptr;
    const std::size_t values = label != nullptr ? label->values.size() : 0;
    if (choice[i] != kNoLabel && choice[i] >= values) in.fail();
  }
  if (word == nullptr || word->family == nullptr || in.failed() || find(*word, choice) != nullptr) {
    return in.fail();
  }
  add(*word, choice).restore(in);
}

void Cells::restore_custom(SavedReader& in) {
  const std::string metric = in.text();
  add_custom(metric, in.finite());
}

void Evaluation::save(RecordWriter& out) const {
  out.begin("evaluation").text(metric_).flag(lower_is_better_);
  out.number(seen_.first).number(seen_.value).number(seen_.best).number(seen_.target);
  jobs::save(out, seen_.best_time);
  jobs::save(out, seen_.solved);
}

void Evaluation::restore(SavedReader& in) {
  lower_is_better_ = in.flag();
  seen_.first = in.optional_finite();
  seen_.value = in.optional_finite();
  seen_.best = in.optional_finite();
  seen_.target = in.optional_finite();
  seen_.best_time = in.moment();
  seen_.solved = in.optional_moment();
}

}  // namespace gpumeter::jobs
