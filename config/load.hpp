#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "config/schema.hpp"

namespace gpumeter::config {

/// One thing that is wrong with a file: where, which key, and what would be right.
struct Problem {
  std::string file;
  int line = 0;     ///< from 1; 0: the file as a whole
  std::string key;  ///< full path, "web.listen"; empty: no key in particular
  std::string text;
};

/// "gpumeter.yaml:3: web.listen: must be ..."
std::string to_string(const Problem& problem);

/// Where a file has its values, for checks that need more than the file and so come after it was read.
struct Places {
  std::string file;  ///< empty: there was none
  /// By the key's full path: of a list each element's line, of any other value the one line.
  std::map<std::string, std::vector<int>> lines;

  /// A problem of one element of a list, or of a plain value (0). Without a line for what the file does not
  /// have.
  Problem problem(const std::string& key, std::size_t element, const std::string& text) const;
};

/// A whole configuration, or everything that is wrong with the file in the order of its lines.
using Loaded = std::variant<Config, std::vector<Problem>>;

/// Reads a configuration: what is not in the text keeps its default, as do empty sections and keys. Unknown
/// and duplicate keys, wrong types and bad values are problems. `file` is what problems call it.
/// `places`, unless null, is filled in.
Loaded load_text(std::string_view text, const std::string& file, Schemas schemas, Places* places = nullptr);

/// The same from a file of at most 1 MiB.
Loaded load_file(const std::string& file, Schemas schemas, Places* places = nullptr);

}  // namespace gpumeter::config
