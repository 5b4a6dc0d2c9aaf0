#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::import {

/// "12: the reason": a place in the file, from 1. The program puts the file's name before it.
Error at_line(std::size_t line, const std::string& reason);

struct TextLine {
  std::string_view text;  ///< without its end
  std::size_t number = 0;
};

/// All lines. An Error if the text is empty or its last line has no end, as in a file that was cut.
Result<std::vector<TextLine>> lines_of(std::string_view text);

/// What a parser makes of a text: it takes one line at a time, and the first Error ends it.
template <class Parser>
auto parse_lines(std::string_view text) -> decltype(Parser().end()) {
  const auto lines = lines_of(text);
  if (!lines) return lines.error();
  Parser parser;
  for (const TextLine& line : *lines) {
    if (auto error = parser.take(line)) return *error;
  }
  return parser.end();
}

/// The words of a line, separated by blanks or by the bars and commas of tables.
std::vector<std::string_view> words_of(std::string_view line);

/// Returns the part of the line after `mark`, trimmed; nullopt if the line does not contain the mark.
std::optional<std::string_view> after(std::string_view line, std::string_view mark);

/// A finite number of 0 or more that the daemon accepts.
std::optional<double> measure(std::string_view text) noexcept;

}  // namespace gpumeter::import
