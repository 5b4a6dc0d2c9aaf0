#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace gpumeter::config {

/// A whole configuration, or all problems of the file in the order of its lines.
using Loaded = std::variant<Config, std::vector<Problem>>;

/// Reads a configuration. Missing and empty keys and sections keep their defaults. Unknown and duplicate
/// keys, wrong types and bad values are problems. `file` is the file name in the problems. `places`, unless
/// null, is filled in.
Loaded load_text(std::string_view text, const std::string& file, const Schema& schema,
                 Places* places = nullptr);

/// Reads a file of at most 1 MiB in the same way.
Loaded load_file(const std::string& file, const Schema& schema, Places* places = nullptr);

}  // namespace gpumeter::config
