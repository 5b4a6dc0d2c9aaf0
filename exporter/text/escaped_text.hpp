#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "exporter/text/format.hpp"

namespace gpumeter {

/// Text that may stand in a page as it is. Only the functions below make one, so the type proves that the
/// escaping happened, and happened once. Bytes that are no UTF-8 (drivers and process names have them)
/// become U+FFFD, one for each byte, as in Go.
class EscapedText {
 public:
  EscapedText() = default;
  /// Between the quotes of a label: `\`, `"` and LF are escaped.
  static EscapedText label_value(std::string_view raw);
  /// After `# HELP name `: `\` and LF are escaped, in OpenMetrics `"` too.
  static EscapedText help(std::string_view raw, Format format);

  std::string_view view() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }

 private:
  explicit EscapedText(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

}  // namespace gpumeter
