#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/jobs/model/run_series.hpp"
#include "collectors/jobs/model/saved.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"

namespace gpumeter::jobs {

/// The values of one word with one choice of labels, and their series.
class Cell {
 public:
  Cell(const Word& word, LabelChoice choice, const RunSeries& run);

  bool is(const Word& word, LabelChoice choice) const noexcept { return word_ == &word && choice_ == choice; }
  /// `value`: as the client sent it, in seconds if it is a duration. `weight`: the number of events that the
  /// value represents (1 / sampling rate). A gauge has no weight.
  void add(double value, double weight) noexcept;
  /// Sets the value of a Shape::memory; nullopt removes its series from the page.
  void hold(std::optional<double> value) noexcept;
  /// Adds the values of a cell of the same word and labels. Not for a gauge.
  void absorb(const Cell& other) noexcept;
  const Word& word() const noexcept { return *word_; }
  LabelChoice choice() const noexcept { return choice_; }
  void show() const noexcept;
  /// The number of series that the quotas charge.
  std::size_t series() const noexcept { return slots_.size(); }
  void save(RecordWriter& out) const;
  void restore(SavedReader& in);

 private:
  const Word* word_;
  LabelChoice choice_;
  double value_ = 0;              ///< count, last value, or sum of the durations
  bool is_held_ = true;           ///< false: no process of the run has the value any more
  double times_ = 0;              ///< durations
  std::vector<double> buckets_;   ///< not cumulative; only of a histogram
  std::vector<OwnedSlot> slots_;  ///< times and value, or buckets, sum and count
};

/// The last value of a metric outside the vocabulary.
struct CustomScalar {
  std::string metric;
  double value;
  OwnedSlot slot;
};

/// The cells of a run. The closed sets limit them to 52, so a linear search is fastest.
class Cells {
 public:
  explicit Cells(RunSeries run) : run_(std::move(run)) {}

  Cell* find(const Word& word, LabelChoice choice) noexcept;
  Cell& add(const Word& word, LabelChoice choice) { return cells_.emplace_back(word, choice, run_); }
  void show() const noexcept;
  /// The number of series that the quotas charge.
  std::size_t series() const noexcept;
  const std::vector<Cell>& all() const noexcept { return cells_; }
  std::vector<Cell>& all() noexcept { return cells_; }
  void clear();

  CustomScalar* find_custom(std::string_view metric) noexcept;
  void add_custom(const std::string& metric, double value);
  std::size_t customs() const noexcept { return customs_.size(); }

  /// One line for each cell and custom metric.
  void save(RecordWriter& out) const;
  void restore_cell(SavedReader& in);
  void restore_custom(SavedReader& in);

 private:
  RunSeries run_;
  std::vector<Cell> cells_;
  std::vector<CustomScalar> customs_;
};

}  // namespace gpumeter::jobs
