#include "collectors/sources/page/sample_lines.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.hpp"

namespace gpumeter {
namespace {

std::optional<double> value_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text == "Inf") return std::numeric_limits<double>::infinity();
  return parse_number<double>(text);
}

void skip_blanks(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

/// The text up to the closing quote, which is removed too; nullopt if there is none.
std::optional<std::string> take_quoted(std::string_view& text) {
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

}  // namespace

std::string_view SampleLine::label(std::string_view wanted) const noexcept {
  const auto found = std::ranges::find(labels, wanted, &Label::name);
  return found == labels.end() ? std::string_view() : found->value;
}

bool SampleLines::next() {
  while (true) {
    const Line line = next_line();
    if (line == Line::bad && first_bad_line_ == 0) first_bad_line_ = line_;
    if (line == Line::sample || line == Line::end) return line == Line::sample;
  }
}

SampleLines::Line SampleLines::next_line() {
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

bool SampleLines::parse(std::string_view line) {
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

bool SampleLines::parse_labels(std::string_view& line) {
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

}  // namespace gpumeter
