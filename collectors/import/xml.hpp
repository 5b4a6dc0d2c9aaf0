#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::import {

/// An element of a small XML document: attributes, children, and the text directly in it.
struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes = {};
  std::string text = {};
  std::vector<Element> children = {};
  std::size_t line = 0;

  /// The attribute's value, or empty.
  std::string_view attribute(std::string_view key) const noexcept;
};

/// Parses what programs write: elements, attributes, text, the five named entities, declarations and
/// comments. Nothing else of XML, and no document type. An Error names the line. Nesting is limited to 64
/// levels.
Result<Element> parse_xml(std::string_view text);

}  // namespace gpumeter::import
