#include "exporter/http/negotiation/accept_header.hpp"

#include <algorithm>
#include <tuple>

#include "base/text.hpp"

namespace gpumeter {
namespace {

std::string_view unquoted(std::string_view text) noexcept {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Takes the next part and removes the blanks around it.
std::string_view take_part(std::string_view& rest, char separator) noexcept {
  return trimmed(take_until(rest, separator));
}

double quality_of(std::string_view text) noexcept {
  const double quality = parse_number<double>(text).value_or(1);
  return quality > 0 ? std::min(quality, 1.0) : 0;
}

AcceptRange parse_range(std::string_view text) noexcept {
  AcceptRange range{.value = take_part(text, ';'), .parameters = text};
  const std::string_view quality = range.parameter("q");
  if (!quality.empty()) range.quality = quality_of(quality);
  return range;
}

auto preference(const AcceptRange& range) noexcept {
  return std::tuple(-range.quality, range.value.starts_with('*'), range.value.ends_with('*'));
}

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string_view AcceptRange::parameter(std::string_view name) const noexcept {
  std::string_view found;
  for (std::string_view rest = parameters; !rest.empty();) {
    std::string_view text = take_part(rest, ';');
    if (equals_ignoring_case(take_part(text, '='), name)) found = unquoted(trimmed(text));
  }
  return found;
}

std::vector<AcceptRange> parse_accept(std::string_view header) {
  std::vector<AcceptRange> ranges;
  ranges.reserve(8);  // Prometheus sends 4 or 5
  while (!header.empty()) {
    const std::string_view element = take_part(header, ',');
    if (element.empty()) continue;
    const AcceptRange range = parse_range(element);
    ranges.insert(std::ranges::upper_bound(ranges, preference(range), {}, preference), range);
  }
  return ranges;
}

bool equals_ignoring_case_of(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace gpumeter
