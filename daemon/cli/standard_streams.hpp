#pragma once

#include <string_view>

namespace gpumeter {

/// Opens /dev/null for each of stdin, stdout and stderr that is closed, so that no file or socket that is
/// opened later takes its number and gets what is written there. A write to such a stream fails. First in
/// main().
void open_closed_streams() noexcept;

/// Writes the text to stdout. The exit code: 1, with the reason on stderr, where stdout does not take it all.
int print(std::string_view text);

}  // namespace gpumeter
