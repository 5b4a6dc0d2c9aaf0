#include "collectors/files/text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::files {
namespace {

constexpr std::string_view kBlanks = " \t\r";

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool same_word(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

/// Removes the first word of a line and returns it; empty at the end.
std::string_view take_word(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

struct Count {
  std::string_view key;
  std::uint64_t value = 0;
};

std::optional<Count> parse_count(std::string_view line) noexcept {
  line = trimmed(line);
  Count count;
  count.key = take_until(line, ' ');
  if (count.key.ends_with(':')) count.key.remove_suffix(1);
  const auto value = parse_number<std::uint64_t>(trimmed(line));
  if (!value) return std::nullopt;
  count.value = *value;
  return count;
}

std::optional<std::size_t> place_of(std::string_view line, std::string_view name) noexcept {
  for (std::size_t place = 0;; ++place) {
    const std::string_view word = take_word(line);
    if (word.empty()) return std::nullopt;
    if (word == name) return place;
  }
}

}  // namespace

std::optional<double> leading_number(std::string_view text) noexcept {
  text = sysfs::trimmed(text);
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;  // "inf", "nan"
  const std::optional<double> value = take_number<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  const bool goes_on = !text.empty() && (is_letter(text.front()) || text.front() == '.');
  return goes_on ? std::nullopt : value;
}

std::string_view chosen_word(std::string_view text) noexcept {
  text = sysfs::trimmed(text);
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return text;
  return gpumeter::trimmed(text.substr(open + 1, close - open - 1));
}

bool is_one_of(std::string_view text, std::string_view words) noexcept {
  const std::string_view chosen = chosen_word(text);
  while (!words.empty()) {
    if (same_word(take_until(words, '|'), chosen)) return true;
  }
  return false;
}

std::string_view list_field(std::string_view list, std::size_t index) noexcept {
  for (; index > 0 && !list.empty(); --index) take_until(list, ',');
  return sysfs::trimmed(take_until(list, ','));
}

std::optional<double> cell(std::string_view table, std::string_view row, std::string_view column) noexcept {
  const std::optional<std::size_t> place = place_of(take_until(table, '\n'), column);
  if (!place || *place == 0) return std::nullopt;
  while (!table.empty()) {
    std::string_view line = take_until(table, '\n');
    if (take_word(line) != row) continue;
    std::string_view word;
    for (std::size_t i = 0; i < *place; ++i) word = take_word(line);
    return leading_number(word);
  }
  return std::nullopt;
}

std::optional<double> count_of(std::string_view text, std::string_view key) noexcept {
  while (!text.empty()) {
    const std::optional<Count> count = parse_count(take_until(text, '\n'));
    if (count && count->key == key) return static_cast<double>(count->value);
  }
  return std::nullopt;
}

bool has_counts(std::string_view text) noexcept {
  while (!text.empty()) {
    if (parse_count(take_until(text, '\n'))) return true;
  }
  return false;
}

std::string label_value(std::string_view text) {
  std::string value(text);
  std::ranges::transform(value, value.begin(), [](char c) {
    const char small = lower(c);
    return is_letter(small) || (small >= '0' && small <= '9') ? small : '_';
  });
  return value;
}

bool matches(std::string_view pattern, std::string_view path) noexcept {
  constexpr std::string_view kAnyFolders = "**/";
  while (!pattern.empty()) {
    if (pattern.starts_with(kAnyFolders)) {
      pattern.remove_prefix(kAnyFolders.size());
      for (;;) {
        if (matches(pattern, path)) return true;
        const std::size_t slash = path.find('/');
        if (slash == std::string_view::npos) return false;
        path.remove_prefix(slash + 1);
      }
    }
    if (pattern.front() == '*') {
      pattern.remove_prefix(1);
      for (;;) {
        if (matches(pattern, path)) return true;
        if (path.empty() || path.front() == '/') return false;
        path.remove_prefix(1);
      }
    }
    if (path.empty() || path.front() != pattern.front()) return false;
    pattern.remove_prefix(1);
    path.remove_prefix(1);
  }
  return path.empty();
}

}  // namespace gpumeter::files
