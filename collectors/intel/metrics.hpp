#pragma once

#include <span>

#include "collectors/intel/context.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::intel {

/// Every series of an Intel GPU: one row each, with fallbacks after their preferred source.
std::span<const MetricRow<IntelContext>> intel_rows() noexcept;

/// The table, for the docs.
std::span<const RowDoc> intel_row_docs();

}  // namespace gpumeter::intel
