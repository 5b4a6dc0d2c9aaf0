#pragma once

#include <string>
#include <string_view>

namespace gpumeter {

/// The text as a quoted JSON string in ASCII: every other character is escaped. Invalid UTF-8 becomes U+FFFD.
std::string json_quoted(std::string_view text);

/// The shortest text that reads back as `value`. JSON has no NaN and no infinity: they are the strings
/// "NaN", "+Inf" and "-Inf".
std::string json_number(double value);

/// Appends the shortest text with at most `digits` significant digits; null if the number is not finite.
void append_json_number(std::string& out, double value, int digits);

}  // namespace gpumeter
