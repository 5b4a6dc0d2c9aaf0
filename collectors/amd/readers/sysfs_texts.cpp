#include "collectors/amd/readers/sysfs_texts.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::amd {
namespace {

struct Level {
  double megahertz = 0;
  bool marked = false;
};

std::optional<Level> parse_level(std::string_view line) noexcept {
  take_until(line, ':');
  line = trimmed(line);
  const auto megahertz = take_number<std::uint32_t>(line);
  if (!megahertz || !line.starts_with("Mhz")) return std::nullopt;
  return Level{static_cast<double>(*megahertz), line.ends_with('*')};
}

/// Calls `take` with the result of `parse` for each line that parses, until `take` returns true.
template <class Parse, class Take>
bool any_line(std::string_view text, Parse parse, Take take) noexcept {
  while (!text.empty()) {
    const auto parsed = parse(take_until(text, '\n'));
    if (parsed && take(*parsed)) return true;
  }
  return false;
}

}  // namespace

std::optional<double> highest_level(std::string_view text) noexcept {
  std::optional<double> highest;
  any_line(text, parse_level, [&](const Level& level) {
    highest = std::max(highest.value_or(0), level.megahertz);
    return false;
  });
  return highest;
}

std::optional<double> current_level(std::string_view text) noexcept {
  std::optional<double> current;
  any_line(text, parse_level, [&](const Level& level) {
    if (level.marked) current = level.megahertz;
    return level.marked;
  });
  return current;
}

std::optional<double> sum_of_links(std::string_view text) noexcept {
  double sum = 0;
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto links = parse_number<unsigned>(take_until(text, ' '), 16);
    if (!links) return std::nullopt;
    sum += *links;
  }
  return sum;
}

}  // namespace gpumeter::amd
