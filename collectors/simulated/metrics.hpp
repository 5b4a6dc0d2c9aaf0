#pragma once

#include <span>

#include "collectors/simulated/rows.hpp"

namespace gpumeter::simulated {

/// All rows of a simulated device: static storage.
std::span<const Row> simulated_rows() noexcept;

/// The same as the docs show them.
std::span<const RowDoc> simulated_row_docs();

}  // namespace gpumeter::simulated
