#pragma once

#include <vector>

#include "config/config.hpp"
#include "config/problem.hpp"

namespace gpumeter::config {

/// What is wrong with values that are right each by itself. A problem is placed at a key that the file has;
/// the other key may be a default.
std::vector<Problem> check_relations(const Config& config, const Places& places);

}  // namespace gpumeter::config
