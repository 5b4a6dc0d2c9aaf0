#pragma once

#include <cstddef>
#include <cstdint>

namespace gpumeter {

/// The formats of a page: Prometheus text 0.0.4; OpenMetrics 1.0.0, whose body is also valid 0.0.1; and
/// Prometheus' protobuf messages.
enum class Format : std::uint8_t { text, openmetrics, protobuf };
inline constexpr std::size_t kFormatCount = 3;

/// The content coding of a page.
enum class Encoding : std::uint8_t { identity, gzip };
inline constexpr std::size_t kEncodingCount = 2;

}  // namespace gpumeter
