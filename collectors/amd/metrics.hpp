#pragma once

#include <span>

#include "collectors/amd/context.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::amd {

/// Every series of an AMD card: one row each, with fallbacks after their preferred source.
std::span<const MetricRow<AmdContext>> amd_rows() noexcept;

/// The same for each partition of a divided card.
std::span<const MetricRow<AmdContext>> amd_partition_rows() noexcept;

/// Both tables, for the docs.
std::span<const RowDoc> amd_row_docs();

}  // namespace gpumeter::amd
