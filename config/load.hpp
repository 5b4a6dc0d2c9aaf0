#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "config/problem.hpp"
#include "config/schema.hpp"

namespace gpumeter::config {

/// A whole configuration, or everything that is wrong with the file in the order of its lines.
using Loaded = std::variant<Config, std::vector<Problem>>;

/// Reads a configuration: keys that the text lacks keep their defaults, as do empty sections and keys.
/// Unknown and duplicate keys, wrong types and bad values are problems. `file` is the name that problems give
/// it. `places`, unless null, is filled in.
Loaded load_text(std::string_view text, const std::string& file, Schemas schemas, Places* places = nullptr);

/// The same from a file of at most 1 MiB.
Loaded load_file(const std::string& file, Schemas schemas, Places* places = nullptr);

}  // namespace gpumeter::config
