#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gpumeter {

/// As durations are written in the configuration: whole milliseconds.
using Duration = std::chrono::milliseconds;

/// What an error message says that a duration is.
inline constexpr std::string_view kDurationForm = "a number with its unit, such as 500ms, 5s or 1m30s";

/// "500ms", "7.3s", "1h30m": numbers of h, m, s and ms, added up to whole milliseconds. nullopt for anything
/// else, a bare number and more than 100 years included.
std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// The shortest text that parse_duration() reads back: 90 min is "1h30m", nothing at all "0s".
std::string duration_text(Duration duration);

}  // namespace gpumeter
