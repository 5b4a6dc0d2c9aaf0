#include "collectors/jobs/model/cells.hpp"

#include <algorithm>
#include <functional>

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

}  // namespace gpumeter::jobs
