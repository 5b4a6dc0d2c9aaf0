#include "collectors/simulated/duration.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <system_error>

namespace gpumeter::simulated {
namespace {

struct Unit {
  std::string_view suffix;
  double seconds;
};
// "ms" stands before "m", of which it would else be taken for the start.
constexpr Unit kUnits[] = {{"ms", 1e-3}, {"h", 3600}, {"m", 60}, {"s", 1}};
constexpr double kMostSeconds = 100.0 * 365 * 24 * 3600;

const Unit* leading_unit(std::string_view text) noexcept {
  for (const Unit& unit : kUnits) {
    if (text.starts_with(unit.suffix)) return &unit;
  }
  return nullptr;
}

// Takes one "30m" off the front of the text, as seconds.
std::optional<double> take_part(std::string_view& text) noexcept {
  const bool digit_first = text.front() >= '0' && text.front() <= '9';  // no sign, no "inf"
  double count = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count, std::chars_format::fixed);
  if (!digit_first || error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  const Unit* unit = leading_unit(text);
  if (unit == nullptr) return std::nullopt;
  text.remove_prefix(unit->suffix.size());
  return count * unit->seconds;
}

}  // namespace

std::optional<Nanoseconds> parse_duration(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  while (!text.empty()) {
    const std::optional<double> part = take_part(text);
    if (!part || *part > kMostSeconds - seconds) return std::nullopt;
    seconds += *part;
  }
  return Nanoseconds(std::llround(seconds * 1e9));
}

}  // namespace gpumeter::simulated
