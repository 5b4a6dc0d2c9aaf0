#pragma once

#include <cstddef>
#include <cstdint>

namespace gpumeter {

/// The text formats of a page: Prometheus text 0.0.4, and OpenMetrics 1.0.0 (whose body serves 0.0.1 too).
enum class Format : std::uint8_t { text, openmetrics };
inline constexpr std::size_t kFormatCount = 2;

/// How the bytes of a page travel.
enum class Encoding : std::uint8_t { identity, gzip };
inline constexpr std::size_t kEncodingCount = 2;

}  // namespace gpumeter
