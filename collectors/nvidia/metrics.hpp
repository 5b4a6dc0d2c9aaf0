#pragma once

#include <span>

#include "collectors/api/collector.hpp"
#include "collectors/nvidia/context.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::nvidia {

/// The table of all values of a GPU, and of each of its MIG instances. `each_link` adds the rows of each
/// NVLink.
std::span<const MetricRow<NvidiaContext>> nvidia_rows(bool each_link);
std::span<const MetricRow<NvidiaContext>> nvidia_partition_rows() noexcept;

std::span<const RowDoc> nvidia_row_docs();

}  // namespace gpumeter::nvidia
