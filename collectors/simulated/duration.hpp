#pragma once

#include <optional>
#include <string_view>

#include "collectors/api/clock.hpp"

namespace gpumeter::simulated {

/// What a refused duration is answered with.
inline constexpr std::string_view kDurationForm = "a number with its unit, such as 500ms, 5s or 1m30s";

/// "500ms", "7.3s", "1m30s": numbers of h, m, s and ms, added up; whatever the config file takes for a
/// duration is one here. nullopt for anything else, a bare number or more than 100 years included.
std::optional<Nanoseconds> parse_duration(std::string_view text) noexcept;

}  // namespace gpumeter::simulated
