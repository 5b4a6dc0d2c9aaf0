#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gpumeter {

/// Durations of the configuration, in whole milliseconds.
using Duration = std::chrono::milliseconds;

/// The format of a duration, for error messages.
inline constexpr std::string_view kDurationForm = "a number with its unit, such as 500ms, 5s or 1m30s";

/// Parses "500ms", "7.3s" or "1h30m": numbers of h, m, s and ms whose sum is a whole number of milliseconds.
/// Returns nullopt for any other text, such as a bare number, and for more than 100 years.
std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// Returns the shortest text that parse_duration() accepts: 90 min is "1h30m", zero is "0s".
std::string duration_text(Duration duration);

}  // namespace gpumeter
