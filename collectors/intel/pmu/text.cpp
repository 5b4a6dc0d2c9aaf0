#include "collectors/intel/pmu/text.hpp"

#include "base/text.hpp"

namespace gpumeter::intel::pmu {
namespace {

constexpr unsigned kLastBit = 63;

std::optional<Field::Bits> parse_bits(std::string_view text) noexcept {
  const auto first = take_number<unsigned>(text);
  if (!first || *first > kLastBit) return std::nullopt;
  if (text.empty()) return Field::Bits{*first, *first};
  if (!text.starts_with('-')) return std::nullopt;
  const auto last = parse_number<unsigned>(text.substr(1));
  if (!last || *last < *first || *last > kLastBit) return std::nullopt;
  return Field::Bits{*first, *last};
}

/// Decimal, or hexadecimal after "0x".
std::optional<std::uint64_t> parse_value(std::string_view text) noexcept {
  const bool is_hexadecimal = text.starts_with("0x");
  if (is_hexadecimal) text.remove_prefix(2);
  return parse_number<std::uint64_t>(text, is_hexadecimal ? 16 : 10);
}

}  // namespace

std::optional<std::uint64_t> Field::place(std::uint64_t value) const noexcept {
  std::uint64_t config = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned width = ranges[i].last - ranges[i].first + 1;
    const std::uint64_t mask = width > kLastBit ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    config |= (value & mask) << ranges[i].first;
    value = width > kLastBit ? 0 : value >> width;
  }
  return value == 0 ? std::optional(config) : std::nullopt;
}

std::optional<Field> parse_field(std::string_view text) noexcept {
  text = trimmed(text);
  if (take_until(text, ':') != "config") return std::nullopt;
  Field field;
  while (!text.empty()) {
    const std::optional<Field::Bits> bits = parse_bits(take_until(text, ','));
    if (!bits || field.count == Field::kMost) return std::nullopt;
    field.ranges[field.count++] = *bits;
  }
  return field.count > 0 ? std::optional(field) : std::nullopt;
}

std::optional<std::uint64_t> term_of(std::string_view text, std::string_view term) noexcept {
  text = trimmed(text);
  while (!text.empty()) {
    std::string_view part = take_until(text, ',');
    if (take_until(part, '=') == term) return parse_value(part);
  }
  return std::nullopt;
}

std::optional<int> first_cpu(std::string_view text) noexcept {
  text = trimmed(text);
  const auto cpu = take_number<int>(text);
  const bool ends = text.empty() || text.starts_with('-') || text.starts_with(',');
  return cpu && *cpu >= 0 && ends ? cpu : std::nullopt;
}

std::optional<EngineName> parse_busy_event(std::string_view name) noexcept {
  constexpr std::string_view kBusy = "-busy";
  if (!name.ends_with(kBusy)) return std::nullopt;
  name.remove_suffix(kBusy.size());
  const std::size_t digits = name.find_first_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const auto instance = parse_number<unsigned>(name.substr(digits));
  if (!instance) return std::nullopt;
  return EngineName{name.substr(0, digits), *instance};
}

}  // namespace gpumeter::intel::pmu
