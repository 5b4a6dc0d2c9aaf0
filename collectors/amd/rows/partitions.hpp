#pragma once

#include "collectors/amd/context.hpp"
#include "collectors/amd/kfd/peaks.hpp"
#include "collectors/amd/readers/blob.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/table/row.hpp"

/// The rows that each partition of a divided card has. Sensors are the card's alone: a partition has none of
/// its own.
namespace gpumeter::amd {

namespace readers {

Handle bind_part(AmdContext& context, const ReadSource& source);
Sample read_part(AmdContext& context, int handle) noexcept;
Handle bind_part_memory(AmdContext& context, const ReadSource& source);
Sample read_part_memory(AmdContext& context, int handle) noexcept;
Handle bind_part_peak(AmdContext& context, const ReadSource& source);
Sample read_part_peak(AmdContext& context, int handle) noexcept;

}  // namespace readers

/// The busiest of the elements that are the partition's.
consteval AmdReader part_highest(std::string_view name) {
  return {readers::bind_part, readers::read_part, {name, readers::field_of(name)}};
}

constexpr AmdReader part_memory() noexcept {
  return {readers::bind_part_memory, readers::read_part_memory, {"kfd/topology mem_banks/0 size_in_bytes"}};
}

constexpr AmdReader part_peak(Peak which) noexcept {
  return {
      readers::bind_part_peak, readers::read_part_peak, {"kfd/topology", static_cast<std::uint64_t>(which)}};
}

// clang-format off
// Memory bandwidth is not here: the topology says of each partition the width of the whole card.
inline constexpr MetricRow<AmdContext> kPartitionRows[] = {
    {&catalog::partition_utilization, {}, part_highest("gpu_metrics.gfx_busy_inst"), 1, Tier::fast, instantaneous(catalog::partition_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "decode"}, part_highest("gpu_metrics.vcn_busy"), 1, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "jpeg"}, part_highest("gpu_metrics.jpeg_busy"), 1, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_memory_size, {"memory", "vram"}, part_memory(), 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "fp32", "source", "formula"}, part_peak(Peak::fp32), 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "fp16", "source", "formula"}, part_peak(Peak::fp16), 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "bf16", "source", "formula"}, part_peak(Peak::bf16), 1, Tier::once, {}, kNeverWakes},
};
// clang-format on

}  // namespace gpumeter::amd
