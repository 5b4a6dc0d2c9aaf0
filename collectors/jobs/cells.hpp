#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "collectors/jobs/job_series.hpp"
#include "collectors/jobs/vocabulary.hpp"

namespace gpumeter::jobs {

/// The values of one word with one choice of labels.
class Cell {
 public:
  Cell(const Word& word, LabelChoice choice);

  bool is(const Word& word, LabelChoice choice) const noexcept { return word_ == &word && choice_ == choice; }
  /// `value` as the client gave it, in seconds where it is a duration; `weight` is how many it stands for
  /// (1 / sampling rate). A gauge has no weight.
  void add(double value, double weight) noexcept;
  /// Appends its lines, with `labels` in front of its own.
  void write(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;

 private:
  using Buckets = std::array<double, kBuckets.size() + 1>;

  void write_histogram(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;

  const Word* word_;
  LabelChoice choice_;
  double value_ = 0;                  ///< count, last value, or sum of the durations
  double times_ = 0;                  ///< durations
  std::unique_ptr<Buckets> buckets_;  ///< not cumulative; only of a histogram
};

/// The cells of a run. Few enough (the closed sets make at most 48) that a search from the front is best.
class Cells {
 public:
  Cell* find(const Word& word, LabelChoice choice) noexcept;
  Cell& add(const Word& word, LabelChoice choice) { return cells_.emplace_back(word, choice); }
  void write(const std::vector<Label>& labels, std::vector<JobSeries>& out) const;
  bool empty() const noexcept { return cells_.empty(); }

 private:
  std::vector<Cell> cells_;
};

}  // namespace gpumeter::jobs
