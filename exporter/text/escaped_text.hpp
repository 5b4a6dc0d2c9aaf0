#pragma once

#include <string>
#include <string_view>
#include <utility>

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

}  // namespace gpumeter
