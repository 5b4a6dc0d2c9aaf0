#include "collectors/jobs/model/cells.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter::jobs {

Cell::Cell(const Word& word, LabelChoice choice) : word_(&word), choice_(choice) {
  if (word.bounds != nullptr) buckets_.resize(word.bounds->size() + 1);
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
  const auto bucket = std::ranges::lower_bound(bounds, value, {}, &Bound::value) - bounds.begin();
  buckets_[static_cast<std::size_t>(bucket)] += weight;
}

void Cell::write(const std::vector<Label>& labels, std::vector<JobSeries>& out) const {
  std::vector<Label> all = labels;
  for (Label& label : labels_of(*word_, choice_)) all.push_back(std::move(label));
  if (!buckets_.empty()) {
    write_histogram(all, out);
    return;
  }
  if (word_->times != nullptr) out.push_back({{word_->times, all}, Part::value, times_});
  out.push_back({{word_->family, std::move(all)}, Part::value, value_});
}

void Cell::write_histogram(const std::vector<Label>& labels, std::vector<JobSeries>& out) const {
  double cumulative = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    cumulative += buckets_[i];
    std::vector<Label> all;
    all.reserve(labels.size() + 1);
    all = labels;
    const bool is_last = i + 1 == buckets_.size();
    all.push_back({"le", std::string(is_last ? "+Inf" : (*word_->bounds)[i].text())});
    out.push_back({{word_->family, std::move(all)}, Part::bucket, cumulative});
  }
  out.push_back({{word_->family, labels}, Part::sum, value_});
  out.push_back({{word_->family, labels}, Part::count, cumulative});
}

Cell* Cells::find(const Word& word, LabelChoice choice) noexcept {
  const auto found = std::ranges::find_if(cells_, [&](const Cell& cell) { return cell.is(word, choice); });
  return found == cells_.end() ? nullptr : &*found;
}

CustomScalar* Cells::find_custom(std::string_view metric) noexcept {
  const auto found = std::ranges::find(customs_, metric, &CustomScalar::metric);
  return found == customs_.end() ? nullptr : &*found;
}

void Cells::write(const std::vector<Label>& labels, std::vector<JobSeries>& out) const {
  for (const Cell& cell : cells_) cell.write(labels, out);
  for (const CustomScalar& custom : customs_) {
    std::vector<Label> all = labels;
    all.push_back({"metric", custom.metric});
    out.push_back({{&catalog::ml_custom, std::move(all)}, Part::value, custom.value});
  }
}

}  // namespace gpumeter::jobs
