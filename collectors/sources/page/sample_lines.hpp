#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

/// One sample of a page in Prometheus' text format (version 0.0.4) or OpenMetrics.
struct SampleLine {
  std::string_view name;
  std::vector<Label> labels;  ///< values without escapes; raw bytes
  double value = 0;
  std::string_view rest = {};  ///< what follows the value: a timestamp or an exemplar

  /// Empty if the sample has no such label.
  std::string_view label(std::string_view wanted) const noexcept {
    const auto found = std::ranges::find(labels, wanted, &Label::name);
    return found == labels.end() ? std::string_view() : found->value;
  }
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
  Line next_line() {
    while (!rest_.empty()) {
      const std::string_view line = take_until(rest_, '\n');
      const std::string_view text = trimmed(line);
      ++line_;
      if (text.empty()) continue;
      if (!text.starts_with('#')) return parse(line) ? Line::sample : Line::bad;
      comment_ = text.substr(1);
      return Line::comment;
    }
    return Line::end;
  }
  /// Goes to the next sample, for readers that can do without the rest of the page; false at the end.
  bool next() {
    while (true) {
      const Line line = next_line();
      if (line == Line::sample || line == Line::end) return line == Line::sample;
    }
  }
  /// Of a comment, what follows its `#`. Valid until next_line().
  std::string_view comment() const noexcept { return comment_; }
  /// Valid until next().
  const SampleLine& sample() const noexcept { return sample_; }

  /// The number of the last line that was read, from 1.
  std::size_t line() const noexcept { return line_; }

 private:
  static std::optional<double> value_of(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    if (text == "Inf") return std::numeric_limits<double>::infinity();
    return parse_number<double>(text);
  }
  static void skip_blanks(std::string_view& text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  }
  /// The text up to the closing quote, which is removed too; nullopt if there is none.
  static std::optional<std::string> take_quoted(std::string_view& text) {
    std::string value;
    while (!text.empty()) {
      char next = text.front();
      text.remove_prefix(1);
      if (next == '"') return value;
      if (next == '\\' && !text.empty()) {
        next = text.front() == 'n' ? '\n' : text.front();
        text.remove_prefix(1);
      }
      value += next;
    }
    return std::nullopt;
  }
  bool parse(std::string_view line) {
    skip_blanks(line);
    sample_.labels.clear();
    sample_.name = line.substr(0, line.find_first_of("{ \t"));
    line.remove_prefix(sample_.name.size());
    if (sample_.name.empty() || (line.starts_with('{') && !parse_labels(line))) return false;
    skip_blanks(line);
    const std::string_view number = line.substr(0, line.find_first_of(" \t\r"));
    const std::optional<double> value = value_of(number);
    sample_.value = value.value_or(0);
    sample_.rest = trimmed(line.substr(number.size()));
    return value.has_value();
  }
  bool parse_labels(std::string_view& line) {
    line.remove_prefix(1);
    while (sample_.labels.size() <= kMostLabels) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t,"), line.size()));
      if (line.starts_with('}')) return line.remove_prefix(1), true;
      const std::size_t equals = line.find('=');
      if (equals == std::string_view::npos) return false;
      std::string name(trimmed(line.substr(0, equals)));
      line.remove_prefix(equals + 1);
      skip_blanks(line);
      if (!line.starts_with('"')) return false;
      line.remove_prefix(1);
      std::optional<std::string> value = take_quoted(line);
      if (!value) return false;
      sample_.labels.push_back({std::move(name), *std::move(value)});
    }
    return false;
  }

  std::string_view rest_;
  std::string_view comment_;
  SampleLine sample_;
  std::size_t line_ = 0;
};

}  // namespace gpumeter
