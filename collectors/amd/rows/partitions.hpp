#pragma once

#include <array>

#include "collectors/amd/readers/blob.hpp"
#include "collectors/api/catalog.hpp"

/// Rows of the card's peak rates, and the rows of each partition of a divided card. Sensors exist only for
/// the whole card.
namespace gpumeter::amd {

// clang-format off
inline constexpr auto kKfdRows = std::to_array<Row>({
    {&catalog::peak_flops, {"dtype", "fp32", "source", "formula"}, peak(Peak::fp32), 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_flops, {"dtype", "fp16", "source", "formula"}, peak(Peak::fp16), 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_flops, {"dtype", "bf16", "source", "formula"}, peak(Peak::bf16), 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_memory_bandwidth, {}, peak(Peak::memory), 1, Tier::once, {}, kNeverWakes},
});

// Memory bandwidth is omitted: for each partition the topology has the width of the whole card.
inline constexpr auto kPartitionRows = std::to_array<Row>({
    {&catalog::partition_utilization, {}, part_highest("gpu_metrics.gfx_busy_inst"), 1, Tier::fast, instantaneous(catalog::partition_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "decode"}, part_highest("gpu_metrics.vcn_busy"), 1, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "jpeg"}, part_highest("gpu_metrics.jpeg_busy"), 1, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_memory_size, {"memory", "vram"}, part_memory(), 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "fp32", "source", "formula"}, part_peak(Peak::fp32), 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "fp16", "source", "formula"}, part_peak(Peak::fp16), 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "bf16", "source", "formula"}, part_peak(Peak::bf16), 1, Tier::once, {}, kNeverWakes},
});
// clang-format on

}  // namespace gpumeter::amd
