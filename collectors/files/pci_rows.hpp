#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "collectors/api/catalog.hpp"
#include "collectors/files/readers.hpp"
#include "collectors/sources/aer.hpp"

/// Rows of any PCI Express device.
namespace gpumeter::files {

/// The PCI Express link of a device that is its card's only function, without a switch of its own. A link of
/// no lanes is down. Reading it wakes the device.
inline constexpr Traits kLinkGeneration{.min = 1, .max = 7};
inline constexpr Traits kLinkLanes{.min = 1, .max = 32, .zero_is_unknown = true};

// clang-format off
inline constexpr auto kLinkRows = std::to_array<Row>({
    {&catalog::pcie_link_generation, {}, generation("current_link_speed"), 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_lanes, {}, file("current_link_width"), 1, Tier::slow, {}, kLinkLanes},
    {&catalog::pcie_link_max_generation, {}, generation("max_link_speed"), 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_max_lanes, {}, file("max_link_width"), 1, Tier::slow, {}, kLinkLanes},
});
// clang-format on

inline constexpr Traits kAerCount{.min = 0, .wakes = false};

constexpr Row aer_row(std::string_view file, std::string_view severity, std::size_t kind) noexcept {
  const LabelSet labels("severity", severity, "kind", aer::kAerKinds[kind].kind);
  return {&catalog::pcie_errors, labels, aer_count(file, kind), 1, Tier::slow, {}, kAerCount};
}

/// The error counts since the machine started. Rows of one file are adjacent, so that the file is read once.
consteval auto aer_rows() {
  constexpr std::size_t kKinds = std::size(aer::kAerKinds);
  std::array<Row, 2 * kKinds - aer::kAerCorrectable> rows{};
  auto* end = rows.data();
  for (std::size_t i = 0; i < aer::kAerCorrectable; ++i)
    *end++ = aer_row("aer_dev_correctable", "correctable", i);
  for (std::size_t i = aer::kAerCorrectable; i < kKinds; ++i)
    *end++ = aer_row("aer_dev_nonfatal", "nonfatal", i);
  for (std::size_t i = aer::kAerCorrectable; i < kKinds; ++i) *end++ = aer_row("aer_dev_fatal", "fatal", i);
  return rows;
}

}  // namespace gpumeter::files
