#include "base/clock.hpp"

#include <array>
#include <cmath>
#include <cstdint>

#include "base/text.hpp"

namespace gpumeter {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t milliseconds;
};
// "ms" precedes "m", which would otherwise match its start.
constexpr std::array<Unit, 4> kUnits = {{{"ms", 1}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}}};
constexpr std::int64_t kMost = std::int64_t{100} * 365 * 24 * 3'600'000;  // 100 years

const Unit* leading_unit(std::string_view text) noexcept {
  for (const Unit& unit : kUnits) {
    if (text.starts_with(unit.suffix)) return &unit;
  }
  return nullptr;
}

/// Removes one part such as "30m" or "7.3s" from the front of the text.
std::optional<std::int64_t> take_part(std::string_view& text) noexcept {
  // take_number() would also accept "inf" and "-1".
  if (text.front() < '0' || text.front() > '9') return std::nullopt;
  const auto count = take_number<double>(text, std::chars_format::fixed);
  const Unit* unit = leading_unit(text);
  if (!count || unit == nullptr) return std::nullopt;
  text.remove_prefix(unit->suffix.size());
  const double milliseconds = *count * static_cast<double>(unit->milliseconds);
  constexpr double kRounding = 1e-6;  // 7.3 s is 7300.000000000001 ms
  if (milliseconds > kMost || std::abs(milliseconds - std::round(milliseconds)) > kRounding)
    return std::nullopt;
  return std::llround(milliseconds);
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  if (text.empty()) return std::nullopt;
  std::int64_t sum = 0;
  while (!text.empty()) {
    const auto part = take_part(text);
    if (!part || *part > kMost - sum) return std::nullopt;
    sum += *part;
  }
  return Duration(sum);
}

std::string duration_text(Duration duration) {
  constexpr std::array<Unit, 4> kLargestFirst = {{{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
  std::string text;
  std::int64_t rest = duration.count();
  for (const Unit& unit : kLargestFirst) {
    const std::int64_t count = rest / unit.milliseconds;
    if (count != 0) text += std::to_string(count) + std::string(unit.suffix);
    rest %= unit.milliseconds;
  }
  return text.empty() ? "0s" : text;
}

}  // namespace gpumeter
