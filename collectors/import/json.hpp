#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::import {

/// A JSON value that knows its line, so that an error about its content can name it.
struct Json {
  enum class Kind : std::uint8_t { null, boolean, number, text, array, object };

  Kind kind = Kind::null;
  double number = 0;  ///< also of a boolean: 0 or 1
  std::string text = {};
  std::vector<Json> items = {};        ///< of an array or an object
  std::vector<std::string> keys = {};  ///< of an object, one for each item
  std::size_t line = 0;                ///< where the value begins

  /// Returns nullptr if there is no such member, or the value is no object.
  const Json* find(std::string_view key) const noexcept;
  /// The text of the member, or empty.
  std::string_view text_of(std::string_view key) const noexcept;
  bool is(Kind other) const noexcept { return kind == other; }
};

/// Parses one document (RFC 8259). Blanks may follow it, nothing else. `first_line`: the number of the text's
/// first line. An Error names the line. Nesting is limited to 64 levels.
Result<Json> parse_json(std::string_view text, std::size_t first_line = 1);

}  // namespace gpumeter::import
