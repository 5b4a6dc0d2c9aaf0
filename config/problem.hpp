#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace gpumeter::config {

/// One problem of a file: its place, its key, and the correction.
struct Problem {
  std::string file;
  int line = 0;     ///< from 1; 0: the file as a whole
  std::string key;  ///< full path, "web.listen"; empty: no key in particular
  std::string text;
};

/// Returns "gpumeter.yaml:3: web.listen: must be ...".
std::string to_string(const Problem& problem);

/// The lines of a file's values, for checks of more than one value.
struct Places {
  std::string file;  ///< empty: no file was read
  /// By the key's full path: the line of each element of a list, or the one line of any other value.
  std::map<std::string, std::vector<int>> lines;

  /// Returns 0 if the file does not have the element. A plain value is element 0.
  int line_of(const std::string& key, std::size_t element = 0) const;
  Problem problem(const std::string& key, std::size_t element, const std::string& text) const {
    return {file, line_of(key, element), key, text};
  }
};

}  // namespace gpumeter::config
