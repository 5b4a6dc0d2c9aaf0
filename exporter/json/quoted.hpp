#pragma once

#include <string>
#include <string_view>

namespace gpumeter {

/// The text as a JSON string with its quotes, in ASCII: every other character is escaped. Bytes that are not
/// UTF-8 become U+FFFD.
std::string json_quoted(std::string_view text);

}  // namespace gpumeter
