#pragma once

#include <string>

#include "base/result.hpp"

namespace gpumeter::config {

/// Reads a regular file of at most kMaxFileBytes; one more byte is returned of a larger one. A FIFO, a
/// terminal and most devices are an Error, because reading them may block for ever. /dev/null is an empty
/// file.
Result<std::string> read_whole(const std::string& path);

}  // namespace gpumeter::config
