#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace gpumeter::config {

/// "500ms", "7.3s", "1h30m": numbers of h, m, s and ms, added up to whole milliseconds. nullopt for anything
/// else, a bare number and more than 100 years included.
std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// The shortest text that parse_duration() reads back: 90 min is "1h30m", nothing at all "0s".
std::string to_string(Duration duration);

}  // namespace gpumeter::config
