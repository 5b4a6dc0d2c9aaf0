#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

/// The file does not say which library computed.
constexpr std::string_view kBackend = "deepbench";
constexpr double kMicrosecond = 1e-6;

struct Precision {
  std::string_view name;
  std::string_view dtype;
};
constexpr Precision kPrecisions[] = {{"half", "fp16"}, {"float", "fp32"}, {"int8", "int8"}};

/// A column of a table; "(usec)" marks those with times.
struct Column {
  std::string name;
  bool is_time = false;
};

/// "m n k a_t b_t precision time (usec)".
std::vector<Column> columns_of(std::string_view line) {
  std::vector<Column> columns;
  for (const std::string_view word : words_of(line)) {
    if (word == "(usec)" && !columns.empty()) {
      columns.back().is_time = true;
    } else {
      columns.push_back({std::string(word), false});
    }
  }
  const bool has_time = std::ranges::any_of(columns, &Column::is_time);
  return has_time ? columns : std::vector<Column>();
}

class Parser {
 public:
  std::optional<Error> take(const TextLine& line) {
    line_ = line.number;
    const std::string_view text = trimmed(line.text);
    if (text.empty() || text.find_first_not_of('-') == std::string_view::npos) return std::nullopt;
    if (std::vector<Column> columns = columns_of(text); !columns.empty()) {
      columns_ = std::move(columns);
      rows_ = 0;
      return std::nullopt;
    }
    const bool is_row = std::ranges::any_of(text.substr(text.find_last_of(" \t") + 1),
                                            [](char c) { return c >= '0' && c <= '9'; });
    if (columns_.empty() || !is_row || text.starts_with("Total kernels")) return std::nullopt;
    return take_row(words_of(text));
  }

  Result<Sheet> end() {
    if (columns_.empty()) return at_line(line_, "no table of DeepBench");
    if (rows_ == 0) return at_line(line_, "the table has no rows: the file is cut");
    return std::move(sheet_);
  }

 private:
  std::string_view value_of(std::string_view column, const std::vector<std::string_view>& words) const {
    const auto found = std::ranges::find(columns_, column, &Column::name);
    return found == columns_.end() ? std::string_view()
                                   : words[static_cast<std::size_t>(found - columns_.begin())];
  }

  std::optional<Error> take_row(const std::vector<std::string_view>& words) {
    // Padded kernels of int8 and the algorithm of convolutions may follow the times.
    if (words.size() < columns_.size()) {
      return at_line(line_, "a row has " + std::to_string(words.size()) + " fields instead of " +
                                std::to_string(columns_.size()) + ": the file is cut");
    }
    ++rows_;
    const bool has_total =
        std::ranges::any_of(columns_, [](const Column& c) { return c.name == "total_time"; });
    const std::string test = test_of(words);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].is_time) continue;
      if (words[i] == "Not") return std::nullopt;  // "Not Supported"
      const auto time = measure(words[i]);
      if (!time) return at_line(line_, "no time: " + gpumeter::quoted(words[i]));
      if (has_total && columns_[i].name != "total_time") continue;
      if (columns_[i].name == "time") take_product(words, *time * kMicrosecond);
      sheet_.gpus[0].result(test + ' ' + columns_[i].name, kSeconds, *time * kMicrosecond);
    }
    return std::nullopt;
  }

  /// The sizes in order, so that a label tells the operation: "m1760 n16 k1760 ..".
  std::string test_of(const std::vector<std::string_view>& words) const {
    std::string test;
    for (std::size_t i = 0; i < columns_.size() && !columns_[i].is_time; ++i) {
      test += (test.empty() ? "" : " ") + columns_[i].name + '=' + std::string(words[i]);
    }
    return test;
  }

  /// A matrix product of m x k and k x n takes 2 m n k operations.
  void take_product(const std::vector<std::string_view>& words, double seconds) {
    double operations = 2;
    for (const std::string_view size : {"m", "n", "k"}) {
      const auto value = measure(value_of(size, words));
      if (!value) return;
      operations *= *value;
    }
    const std::string_view precision = value_of("precision", words);
    const auto* const known = std::ranges::find(kPrecisions, precision, &Precision::name);
    if (!precision.empty() && known == std::end(kPrecisions)) return;
    constexpr double kShortest = 1e-6;  // times are whole microseconds; shorter ones are 0
    if (seconds < kShortest || operations / seconds > 1e18) return;
    sheet_.gpus[0].flops(precision.empty() ? "fp32" : known->dtype, kBackend, operations / seconds);
  }

  Sheet sheet_;
  std::size_t line_ = 1;
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

}  // namespace

Result<Sheet> parse_deepbench(std::string_view text, const Context&) { return parse_lines<Parser>(text); }

}  // namespace gpumeter::import
