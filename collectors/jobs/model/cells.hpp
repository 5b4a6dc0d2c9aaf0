#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/jobs/model/job_series.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"

namespace gpumeter::jobs {

/// The values of one word with one choice of labels.
class Cell {
 public:
  Cell(const Word& word, LabelChoice choice);

  bool is(const Word& word, LabelChoice choice) const noexcept { return word_ == &word && choice_ == choice; }
  /// `value` as the client gave it, in seconds where it is a duration; `weight` is how many it stands for
  /// (1 / sampling rate). A gauge has no weight.
  void add(double value, double weight) noexcept;
  std::size_t series() const noexcept { return series_of(*word_); }
  /// Appends its lines, with `labels` in front of its own.
  void write(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;

 private:
  void write_histogram(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;

  const Word* word_;
  LabelChoice choice_;
  double value_ = 0;             ///< count, last value, or sum of the durations
  double times_ = 0;             ///< durations
  std::vector<double> buckets_;  ///< not cumulative; only of a histogram
};

/// The last value of a metric that is in no vocabulary.
struct CustomScalar {
  std::string metric;
  double value;
};

/// The cells of a run. Few enough (the closed sets make at most 48) that a search from the front is best.
class Cells {
 public:
  Cell* find(const Word& word, LabelChoice choice) noexcept;
  Cell& add(const Word& word, LabelChoice choice) { return cells_.emplace_back(word, choice); }
  void write(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;
  /// As taken off the quotas.
  std::size_t series() const noexcept;

  CustomScalar* find_custom(std::string_view metric) noexcept;
  void add_custom(CustomScalar scalar) { customs_.push_back(std::move(scalar)); }
  std::size_t customs() const noexcept { return customs_.size(); }

 private:
  std::vector<Cell> cells_;
  std::vector<CustomScalar> customs_;
};

}  // namespace gpumeter::jobs
