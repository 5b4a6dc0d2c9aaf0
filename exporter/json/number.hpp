#pragma once

#include <charconv>
#include <cmath>
#include <string>

namespace gpumeter {

/// Appends the shortest text with at most `digits` significant digits; null if the number is not finite.
inline void append_json_number(std::string& out, double value, int digits) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
  out.append(text, end);
}

}  // namespace gpumeter
