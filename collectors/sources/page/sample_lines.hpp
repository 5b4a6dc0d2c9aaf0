#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/series.hpp"

namespace gpumeter {

/// One sample of a page in Prometheus' text format (version 0.0.4) or OpenMetrics.
struct SampleLine {
  std::string_view name;
  std::vector<Label> labels;  ///< values without escapes; raw bytes
  double value = 0;

  /// Empty if the sample has no such label.
  std::string_view label(std::string_view wanted) const noexcept;
};

/// Reads the samples of a page from outside, any bytes. Skips comments and lines that are not samples, lines
/// with more than kMostLabels labels included, and counts them. Timestamps and exemplars are ignored. One
/// thread.
class SampleLines {
 public:
  static constexpr std::size_t kMostLabels = 64;

  /// `page` must outlive the reader.
  explicit SampleLines(std::string_view page) noexcept : rest_(page) {}

  /// Goes to the next sample; false at the end.
  bool next();
  /// Valid until next().
  const SampleLine& sample() const noexcept { return sample_; }

  /// The number of the last line that was read, from 1.
  std::size_t line() const noexcept { return line_; }
  /// The number of the first line that is neither a sample nor a comment nor empty; 0: none so far.
  std::size_t first_bad_line() const noexcept { return first_bad_line_; }

 private:
  /// Returns true for a line that holds no sample and needs none.
  static bool is_blank(std::string_view line) noexcept;
  bool parse(std::string_view line);
  bool parse_labels(std::string_view& line);

  std::string_view rest_;
  SampleLine sample_;
  std::size_t line_ = 0;
  std::size_t first_bad_line_ = 0;
};

}  // namespace gpumeter
