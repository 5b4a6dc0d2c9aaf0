#include "collectors/sources/counts.hpp"

#include <cstdint>

#include "base/text.hpp"

namespace gpumeter {
namespace {

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

}  // namespace

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

}  // namespace gpumeter
