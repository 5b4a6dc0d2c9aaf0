#pragma once

#include <cstdint>
#include <optional>

#include "collectors/amd/kfd/topology.hpp"

namespace gpumeter::amd {

/// What a card can do at the most.
enum class Peak : std::uint8_t { fp32, fp16, bf16, memory };

/// Dense operations per second; of `memory`, bytes per second. nullopt: not known of the architecture, or the
/// driver does not tell the clock.
std::optional<double> peak_of(const KfdNode& card, Peak peak) noexcept;

}  // namespace gpumeter::amd
