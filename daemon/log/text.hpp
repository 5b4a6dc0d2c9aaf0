#pragma once

#include <string>
#include <string_view>

namespace gpumeter {

/// The text with what cannot be seen as escapes: \n, \t, \x1b, \u202e; bytes that are not UTF-8 as \xff.
/// So nothing that is logged can begin a line of its own or rule a terminal.
std::string escape_invisible(std::string_view text);

/// A value as logfmt has it: as it is, or in quotes where it is empty or has a space, '=', '"' or anything
/// that needs an escape.
std::string logfmt_value(std::string_view text);

/// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace gpumeter
