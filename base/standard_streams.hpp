#pragma once

#include <string_view>

namespace gpumeter {

/// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise a file or socket opened
/// later could take the number and receive the output. Writes to such a stream fail. Call it first in main().
void open_closed_streams() noexcept;

/// Writes the text to stdout. Returns the exit code: 0, or 1 if stdout does not accept all of the text; the
/// reason goes to stderr.
int print(std::string_view text);

}  // namespace gpumeter
