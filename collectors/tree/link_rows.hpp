#pragma once

#include <array>

#include "collectors/api/catalog.hpp"
#include "collectors/tree/readers.hpp"

namespace gpumeter::tree {

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

}  // namespace gpumeter::tree
