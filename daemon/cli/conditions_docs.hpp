#pragma once

#include <string>

namespace gpumeter {

/// Returns the table of conditions and the XID catalogue; docs/conditions.md is this text.
std::string conditions_markdown();

}  // namespace gpumeter
