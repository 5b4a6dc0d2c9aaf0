#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gpumeter {

/// Durations of the configuration: whole milliseconds.
using Duration = std::chrono::milliseconds;

/// The form of a duration, for error messages.
inline constexpr std::string_view kDurationForm = "a number with its unit, such as 500ms, 5s or 1m30s";

/// "500ms", "7.3s", "1h30m": numbers of h, m, s and ms, added up to whole milliseconds. nullopt for any other
/// text, such as a bare number, and for more than 100 years.
std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// The shortest text that parse_duration() reads back: 90 min is "1h30m", zero is "0s".
std::string duration_text(Duration duration);

}  // namespace gpumeter
