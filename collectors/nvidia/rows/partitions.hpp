#pragma once

#include "collectors/nvidia/rows/health.hpp"
#include "collectors/nvidia/rows/sensors.hpp"

/// Rows of a MIG instance. Power, temperatures and clocks are the GPU's alone; processes are not told apart
/// here.
namespace gpumeter::nvidia {

// clang-format off
inline constexpr auto kInstanceRows = std::to_array<Row>({
    {&catalog::partition_utilization, {}, gpm("GPM graphics", 1), kPercent, Tier::fast, averaged(catalog::partition_busy_seconds), kRatio},
});
inline constexpr auto kInstanceMemoryRows = memory_rows({&catalog::partition_memory_size, &catalog::partition_memory_used, &catalog::partition_memory_free, &catalog::partition_memory_reserved});
inline constexpr auto kInstanceXidRows = each_place(kInstanceXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::partition_xid_errors, {"xid", xid}, instance_xid_count(place), 1, Tier::fast, {}, kHeard};
});
// clang-format on

}  // namespace gpumeter::nvidia
