#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/options.hpp"
#include "base/result.hpp"

namespace gpumeter::config {

using options::Node;

struct SyntaxError {
  int line;
  std::string text;
};

// The limits of a configuration, so that a hostile or mistaken file causes an error instead of using memory.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxNodes = 20'000;
inline constexpr std::size_t kMaxDepth = 16;

/// Parses one YAML document of maps, lists and plain values; an empty text is a null node. yaml-cpp's own
/// type loses the second of two equal keys and whether a value was quoted, so no other file uses its headers.
/// Anchors, aliases, tags, a second document and tabs as indentation are errors.
std::variant<Node, SyntaxError> parse_yaml(std::string_view text);

/// Reads a regular file of at most kMaxFileBytes; one more byte is returned of a larger one. A FIFO, a
/// terminal and most devices are an Error, because reading them may block for ever. /dev/null is an empty
/// file.
Result<std::string> read_whole(const std::string& path);

}  // namespace gpumeter::config
