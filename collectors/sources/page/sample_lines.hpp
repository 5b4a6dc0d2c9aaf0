#pragma once

#include <cstddef>
#include <cstdint>
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
  std::string_view rest = {};  ///< what follows the value: a timestamp or an exemplar

  /// Empty if the sample has no such label.
  std::string_view label(std::string_view wanted) const noexcept;
};

/// Reads the lines of a page from outside, any bytes. A line with more than kMostLabels labels is no sample.
/// One thread.
class SampleLines {
 public:
  static constexpr std::size_t kMostLabels = 64;

  /// `page` must outlive the reader.
  explicit SampleLines(std::string_view page) noexcept : rest_(page) {}

  enum class Line : std::uint8_t { sample, comment, bad, end };
  /// Goes to the next line that is not blank. bad: neither a sample nor a comment.
  Line next_line();
  /// Goes to the next sample, for readers that can do without the rest of the page; false at the end.
  bool next();
  /// Of a comment, what follows its `#`. Valid until next_line().
  std::string_view comment() const noexcept { return comment_; }
  /// Valid until next().
  const SampleLine& sample() const noexcept { return sample_; }

  /// The number of the last line that was read, from 1.
  std::size_t line() const noexcept { return line_; }
  /// The number of the first line that is neither a sample nor a comment nor empty; 0: none so far.
  std::size_t first_bad_line() const noexcept { return first_bad_line_; }

 private:
  bool parse(std::string_view line);
  bool parse_labels(std::string_view& line);

  std::string_view rest_;
  std::string_view comment_;
  SampleLine sample_;
  std::size_t line_ = 0;
  std::size_t first_bad_line_ = 0;
};

}  // namespace gpumeter
