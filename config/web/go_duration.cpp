#include "config/web/go_duration.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::config::web {
namespace {

struct Unit {
  std::string_view suffix;
  double nanoseconds;
};
// "ms" precedes "m", which would otherwise match its start. Go accepts both of Unicode's signs for micro.
constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                         {"us", 1e3},
                                         {"\u00b5s", 1e3},
                                         {"\u03bcs", 1e3},
                                         {"ms", 1e6},
                                         {"s", 1e9},
                                         {"m", 60e9},
                                         {"h", 3600e9}}};
constexpr double kMost = 9.1e18;  // int64_t holds 9.22e18 ns, 292 years

bool is_start_of_number(std::string_view text) noexcept {
  return !text.empty() && ((text.front() >= '0' && text.front() <= '9') || text.front() == '.');
}

std::optional<double> take_part(std::string_view& text) noexcept {
  if (!is_start_of_number(text)) return std::nullopt;
  const auto count = take_number<double>(text, std::chars_format::fixed);
  if (!count) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.suffix)) continue;
    text.remove_prefix(unit.suffix.size());
    return *count * unit.nanoseconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Nanoseconds> parse_go_duration(std::string_view text) noexcept {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return Nanoseconds(0);
  if (text.empty()) return std::nullopt;
  double sum = 0;
  while (!text.empty()) {
    const auto part = take_part(text);
    if (!part) return std::nullopt;
    sum += *part;
    if (sum > kMost) return std::nullopt;
  }
  return Nanoseconds(std::llround(is_negative ? -sum : sum));
}

}  // namespace gpumeter::config::web
