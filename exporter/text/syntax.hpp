#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "collectors/api/descriptor.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter {

/// Text that a page can contain as it is. Only the functions below create one, so the type proves that the
/// text was escaped exactly once. Drivers and process names contain invalid UTF-8: each such byte becomes
/// U+FFFD, as in Go.
class EscapedText {
 public:
  EscapedText() = default;
  /// A label value, without its quotes: `\`, `"` and LF are escaped.
  static EscapedText label_value(std::string_view raw);
  /// Text that follows `# HELP name `: `\` and LF are escaped, and in OpenMetrics also `"`.
  static EscapedText help(std::string_view raw, Format format);

  std::string_view view() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }

 private:
  explicit EscapedText(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

/// The last line of every OpenMetrics page; nothing may follow it.
inline constexpr std::string_view kOpenMetricsEnd = "# EOF\n";

/// Room for any number as text; the longest is "-2.2250738585072014e-308".
inline constexpr std::size_t kValueTextMax = 32;

/// Writes a sample's value to `to` (kValueTextMax bytes) and returns its end. The text is the shortest that
/// parses to the same double, like Go's %g. Both formats spell NaN, +Inf and -Inf the same.
char* write_value(char* to, double value) noexcept;

/// The metadata lines of a family: HELP and TYPE; in OpenMetrics TYPE, UNIT and HELP. In OpenMetrics these
/// lines omit `_total` from a counter's name.
std::string family_header(const MetricDescriptor& family, Format format);

/// Appends the start of a sample line, including the space before the value: `name_suffix{labels} `.
void append_line_prefix(const MetricDescriptor& family, SeriesPart part, const Labels& labels,
                        std::string& to);

/// The same for the line that has the start time of a counter in OpenMetrics: `name_created{labels} `.
void append_created_prefix(const MetricDescriptor& family, const Labels& labels, std::string& to);

}  // namespace gpumeter
