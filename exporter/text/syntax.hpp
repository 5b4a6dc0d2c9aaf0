#pragma once

#include <string>
#include <string_view>

#include "collectors/api/descriptor.hpp"
#include "exporter/store/family.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter {

/// What every OpenMetrics page closes with; nothing may follow.
inline constexpr std::string_view kOpenMetricsEnd = "# EOF\n";

/// Room for any number in text, the longest being "-2.2250738585072014e-308".
inline constexpr std::size_t kValueTextMax = 32;

/// Writes a sample's value to `to` (kValueTextMax bytes) and returns its end. The shortest text that reads
/// back as the same double, as Go's %g; NaN, +Inf and -Inf as both formats spell them.
char* write_value(char* to, double value) noexcept;

/// The metadata lines of a family: HELP and TYPE, in OpenMetrics TYPE, UNIT and HELP of the family name,
/// which is a counter's without `_total`.
std::string family_header(const MetricDescriptor& family, Format format);

/// Appends what a sample line starts with, the space before the value included: `name_suffix{labels} `.
void append_line_prefix(const MetricDescriptor& family, Part part, const Labels& labels, std::string& to);

}  // namespace gpumeter
