#pragma once

#include <span>

#include "collectors/simulated/rows.hpp"

namespace gpumeter::simulated {

/// All rows of a simulated device, in static storage.
std::span<const Row> simulated_rows() noexcept;

/// The same rows as the docs list them.
std::span<const RowDoc> simulated_row_docs();

}  // namespace gpumeter::simulated
