#pragma once

namespace gpumeter::intel::memory {

/// True if the process has CAP_PERFMON or CAP_SYS_ADMIN, by which the drivers tell how much memory is used
/// (perfmon_capable()).
bool may_see_use() noexcept;

}  // namespace gpumeter::intel::memory
