#include "exporter/http/accept_header.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace gpumeter {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string_view unquoted(std::string_view text) noexcept {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Cuts what precedes the next separator off `rest`.
std::string_view take_until(std::string_view& rest, char separator) noexcept {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trimmed(part);
}

double quality_of(std::string_view text) noexcept {
  double quality = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quality);
  if (error != std::errc{} || end != text.data() + text.size()) return 1;
  return quality > 0 ? std::min(quality, 1.0) : 0;
}

AcceptRange parse_range(std::string_view text) noexcept {
  AcceptRange range{.value = take_until(text, ';'), .parameters = text};
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
    std::string_view text = take_until(rest, ';');
    if (equals_ignoring_case(take_until(text, '='), name)) found = unquoted(trimmed(text));
  }
  return found;
}

std::vector<AcceptRange> parse_accept(std::string_view header) {
  std::vector<AcceptRange> ranges;
  ranges.reserve(8);  // Prometheus sends 4 or 5
  while (!header.empty()) {
    const std::string_view element = take_until(header, ',');
    if (element.empty()) continue;
    const AcceptRange range = parse_range(element);
    ranges.insert(std::ranges::upper_bound(ranges, preference(range), {}, preference), range);
  }
  return ranges;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace gpumeter
