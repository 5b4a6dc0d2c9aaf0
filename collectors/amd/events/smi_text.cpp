#include "collectors/amd/events/smi_text.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gpumeter::amd {

std::optional<std::size_t> parse_smi_line(std::string_view line) noexcept {
  const auto number = parse_number<std::uint32_t>(take_until(line, ' '), 16);
  const auto* const known = std::ranges::find(kEvents, number.value_or(0), &EventKind::number);
  if (known == std::end(kEvents)) return std::nullopt;
  return static_cast<std::size_t>(known - std::begin(kEvents));
}

}  // namespace gpumeter::amd
