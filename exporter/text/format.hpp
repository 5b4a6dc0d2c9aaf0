#pragma once

#include <cstddef>
#include <cstdint>

namespace gpumeter {

/// The text formats of a page: Prometheus text 0.0.4 and OpenMetrics 1.0.0, whose body is also valid 0.0.1.
enum class Format : std::uint8_t { text, openmetrics };
inline constexpr std::size_t kFormatCount = 2;

/// The content coding of a page.
enum class Encoding : std::uint8_t { identity, gzip };
inline constexpr std::size_t kEncodingCount = 2;

}  // namespace gpumeter
