#include "collectors/import/lines.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace gpumeter::import {

Error at_line(std::size_t line, const std::string& reason) {
  return Error(std::to_string(line) + ": " + reason);
}

Result<std::vector<TextLine>> lines_of(std::string_view text) {
  if (text.empty()) return at_line(1, "the file is empty");
  const bool is_whole = text.ends_with('\n');
  std::vector<TextLine> lines;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, lines.size() + 1});
  }
  if (!is_whole) return at_line(lines.size(), "the line has no end: the file is cut");
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  const auto add = [&](std::string_view word) {
    if (!word.empty()) words.push_back(word);
  };
  std::size_t begin = 0;
  for (std::size_t i = 0; i < line.size();) {
    const bool is_box = line.substr(i).starts_with("\xE2\x94\x82");  // the bar of box drawing, U+2502
    const bool is_separator = is_box || std::string_view(" \t|,").find(line[i]) != std::string_view::npos;
    if (is_separator) add(line.substr(begin, i - begin));
    i += is_box ? 3 : 1;
    if (is_separator) begin = i;
  }
  add(line.substr(begin));
  return words;
}

std::optional<std::string_view> after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return trimmed(line.substr(at + mark.size()));
}

std::optional<double> measure(std::string_view text) noexcept {
  constexpr double kMost = 1e17;  // the daemon's limit, with room for the largest scale
  const auto number = parse_number<double>(text);
  return number && std::isfinite(*number) && *number >= 0 && *number <= kMost ? number : std::nullopt;
}

}  // namespace gpumeter::import
