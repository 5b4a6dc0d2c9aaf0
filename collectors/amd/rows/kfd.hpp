#pragma once

#include "collectors/amd/kfd/peaks.hpp"
#include "collectors/amd/readers/basic.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/table/row.hpp"

/// Rows of amd_metrics.cpp that say what the card can do at the most.
namespace gpumeter::amd {

namespace readers {

Handle bind_peak(AmdContext& context, const ReadSource& source);
Sample read_peak(AmdContext& context, int handle) noexcept;

}  // namespace readers

constexpr AmdReader peak(Peak which) noexcept {
  return {readers::bind_peak, readers::read_peak, {"kfd/topology", static_cast<std::uint64_t>(which)}};
}

// clang-format off
inline constexpr MetricRow<AmdContext> kKfdRows[] = {
    {&catalog::peak_flops, {"dtype", "fp32", "source", "formula"}, peak(Peak::fp32), 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_flops, {"dtype", "fp16", "source", "formula"}, peak(Peak::fp16), 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_flops, {"dtype", "bf16", "source", "formula"}, peak(Peak::bf16), 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_memory_bandwidth, {}, peak(Peak::memory), 1, Tier::once, {}, kNeverWakes},
};
// clang-format on

}  // namespace gpumeter::amd
