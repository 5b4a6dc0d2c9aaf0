#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpumeter::config {

/// Returns the candidate nearest to `word` by edit distance; empty if none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace gpumeter::config
