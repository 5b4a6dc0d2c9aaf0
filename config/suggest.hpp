#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpumeter::config {

/// The candidate that `word` was most likely meant to be, by edit distance; empty where none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// "a, b and c", for messages; `last` stands before the last word.
std::string enumerate(std::span<const std::string> words, std::string_view last);

}  // namespace gpumeter::config
