#pragma once

#include "collectors/api/part.hpp"

namespace gpumeter::web {

/// Fills the history once a second, shortly after each full second, and renders what browsers poll. Only
/// reads memory.
extern const PartEntry kHistory;

}  // namespace gpumeter::web
