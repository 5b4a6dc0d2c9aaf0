#pragma once

#include <vector>

#include "programs/top/layout/table.hpp"
#include "programs/top/model/snapshot.hpp"

namespace gpumeter::top {

/// One row per run. Pure.
Table job_table(const std::vector<Run>& runs);

}  // namespace gpumeter::top
