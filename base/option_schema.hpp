#pragma once

#include <cstdint>
#include <string_view>

namespace gpumeter {

/// A key of one collector's own configuration, in addition to `enabled`.
struct OptionSchema {
  enum class Kind : std::uint8_t { text, integer, number, duration, list };
  std::string_view name;
  Kind kind = Kind::text;
  std::string_view fallback;  ///< the default as spelled in the file; an empty list is ""
  std::string_view help;
};

}  // namespace gpumeter
