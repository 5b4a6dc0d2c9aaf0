#pragma once

#include <optional>
#include <string_view>

#include "base/clock.hpp"

namespace gpumeter::config::web {

/// Parses a duration as Go's time.ParseDuration does: a sign, then numbers of ns, us, µs, ms, s, m and h,
/// such as "1.5h" or "2m30s". "0" needs no unit. Returns nullopt for other texts and for more than 290 years.
std::optional<Nanoseconds> parse_go_duration(std::string_view text) noexcept;

}  // namespace gpumeter::config::web
