#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpumeter::config {

/// A YAML value with its line. yaml-cpp's own type loses the second of two equal keys and whether a value was
/// quoted. With this type, no other file needs yaml-cpp's headers.
struct Node {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };
  Kind kind = Kind::null;
  bool quoted = false;         ///< a scalar in quotes or a block: always a text
  int line = 0;                ///< from 1; the line of the key if the value is in a map
  std::string key;             ///< in a map
  std::string text;            ///< of a scalar
  std::vector<Node> children;  ///< of a sequence or map, in the file's order
};

struct SyntaxError {
  int line;
  std::string text;
};

// The limits of a configuration, so that a hostile or mistaken file causes an error instead of using memory.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxNodes = 20'000;
inline constexpr std::size_t kMaxDepth = 16;

/// Parses one YAML document of maps, lists and plain values; an empty text is a null node. Anchors, aliases,
/// tags, a second document and tabs as indentation are errors.
std::variant<Node, SyntaxError> parse_yaml(std::string_view text);

}  // namespace gpumeter::config
