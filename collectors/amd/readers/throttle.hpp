#pragma once

#include <cstdint>
#include <string_view>

/// The chip-independent throttler bits, `indep_throttle_status` (gpu_metrics 1.3, 2.2 and later; kernel 6.12
/// drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h, SMU_THROTTLER_*_BIT), with the cause that each stands for.
namespace gpumeter::amd {

struct ThrottleReason {
  std::uint8_t bit;
  std::string_view cause;
  std::string_view reason;  ///< the kernel's word, in lower case
};

inline constexpr ThrottleReason kThrottleReasons[] = {
    {0, "power", "ppt0"},
    {1, "power", "ppt1"},
    {2, "power", "ppt2"},
    {3, "power", "ppt3"},
    {4, "power", "spl"},
    {5, "power", "fppt"},
    {6, "power", "sppt"},
    {7, "power", "sppt_apu"},
    {16, "current", "tdc_gfx"},
    {17, "current", "tdc_soc"},
    {18, "current", "tdc_mem"},
    {19, "current", "tdc_vdd"},
    {20, "current", "tdc_cvip"},
    {21, "current", "edc_cpu"},
    {22, "current", "edc_gfx"},
    {23, "current", "apcc"},
    {32, "thermal", "temp_gpu"},
    {33, "thermal", "temp_core"},
    {34, "thermal", "temp_mem"},
    {35, "thermal", "temp_edge"},
    {36, "thermal", "temp_hotspot"},
    {37, "thermal", "temp_soc"},
    {38, "thermal", "temp_vr_gfx"},
    {39, "thermal", "temp_vr_soc"},
    {40, "thermal", "temp_vr_mem0"},
    {41, "thermal", "temp_vr_mem1"},
    {42, "thermal", "temp_liquid0"},
    {43, "thermal", "temp_liquid1"},
    {44, "thermal", "vrhot0"},
    {45, "thermal", "vrhot1"},
    {46, "hardware", "prochot_cpu"},
    {47, "hardware", "prochot_gfx"},
    {56, "reliability", "ppm"},
    {57, "reliability", "fit"},
};

inline constexpr std::string_view kThrottleCauses[] = {"power", "current", "thermal", "hardware",
                                                       "reliability"};

constexpr std::uint64_t mask_of(const ThrottleReason& reason) noexcept {
  return std::uint64_t{1} << reason.bit;
}

/// All bits of a cause. Bits without a name are reserved and belong to none.
constexpr std::uint64_t mask_of_cause(std::string_view cause) noexcept {
  std::uint64_t mask = 0;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if (reason.cause == cause) mask |= mask_of(reason);
  }
  return mask;
}

}  // namespace gpumeter::amd
