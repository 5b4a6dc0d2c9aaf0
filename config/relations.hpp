#pragma once

#include <vector>

#include "config/config.hpp"
#include "config/problem.hpp"

namespace gpumeter::config {

/// Returns the conflicts between values that are each valid alone, and patterns that are none. A problem
/// names a key that the file has; the other key may be a default.
std::vector<Problem> check_relations(const Config& config, const Places& places);

}  // namespace gpumeter::config
