#pragma once

#include <cstdint>
#include <span>
#include <string_view>

/// Chips whose gpu_metrics cannot be interpreted without knowing the model.
namespace gpumeter::amd {

enum class Chip : std::uint8_t { other, mi200, navi2x, van_gogh };

/// By PCI device, from amdgpu's own table (kernel 6.12, drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c).
constexpr Chip chip_of(std::uint16_t device) noexcept {
  switch (device) {
    case 0x7408:
    case 0x740c:
    case 0x740f:
    case 0x7410:
      return Chip::mi200;
    case 0x163f:
      return Chip::van_gogh;
    default:
      break;
  }
  const bool navi_21_to_23 = device >= 0x73a0 && device <= 0x73ff;
  const bool navi_24 = device >= 0x7420 && device <= 0x743f;
  return navi_21_to_23 || navi_24 ? Chip::navi2x : Chip::other;
}

/// A bit of `throttle_status`, whose order is specific to the chip, and the chip-independent bit with the
/// same meaning (kThrottleReasons).
struct ChipThrottleBit {
  std::uint8_t chip;
  std::uint8_t independent;
};

/// Kernel 6.12: sienna_cichlid_ppt.c, aldebaran_ppt.c, vangogh_ppt.c, each in its *_throttler_map.
inline constexpr ChipThrottleBit kNavi2xBits[] = {{1, 35}, {2, 36}, {3, 34}, {4, 38},  {5, 40},  {6, 41},
                                                  {7, 39}, {8, 42}, {9, 43}, {11, 16}, {12, 17}, {13, 0},
                                                  {14, 1}, {15, 2}, {16, 3}, {17, 57}, {18, 56}, {19, 23}};
inline constexpr ChipThrottleBit kMi200Bits[] = {{0, 0},  {1, 1},  {2, 16},  {3, 17}, {4, 18},
                                                 {6, 32}, {7, 34}, {11, 38}, {12, 39}};
inline constexpr ChipThrottleBit kVanGoghBits[] = {{0, 4},  {1, 5},  {2, 6},  {3, 7},  {4, 33}, {5, 32},
                                                   {6, 37}, {7, 19}, {8, 17}, {9, 16}, {10, 20}};

constexpr std::span<const ChipThrottleBit> throttle_bits(Chip chip) noexcept {
  switch (chip) {
    case Chip::navi2x:
      return kNavi2xBits;
    case Chip::mi200:
      return kMi200Bits;
    case Chip::van_gogh:
      return kVanGoghBits;
    case Chip::other:
      return {};
  }
  return {};
}

/// The bits of the chip's `throttle_status` that match chip-independent ones; 0 if there is none.
constexpr std::uint64_t chip_throttle_mask(Chip chip, std::uint64_t independent) noexcept {
  std::uint64_t mask = 0;
  for (const ChipThrottleBit& bit : throttle_bits(chip)) {
    if ((independent >> bit.independent & 1) != 0) mask |= std::uint64_t{1} << bit.chip;
  }
  return mask;
}

/// Fields that the driver of a chip fills with a constant 0 (aldebaran_ppt.c).
constexpr bool is_never_filled(Chip chip, std::string_view field) noexcept {
  return chip == Chip::mi200 && field == "average_mm_activity";
}

/// MI200's accumulator has the unit of all versions from 1.4 on, 2^-16 J (smu13_driver_if_aldebaran.h).
/// Navi2x appears to count mJ in 32 bits, MI100 was found stuck (ROCm/amdsmi issue 38), others have 0.
constexpr bool energy_unit_is_known(Chip chip) noexcept { return chip == Chip::mi200; }

// The chip-independent throttler bits, `indep_throttle_status` (gpu_metrics 1.3, 2.2 and later; kernel 6.12
// drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h, SMU_THROTTLER_*_BIT), with the cause of each.

struct ThrottleReason {
  std::uint8_t bit;
  std::string_view cause;
  std::string_view reason;  ///< the kernel's name, in lower case
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

/// All bits of a cause. Bits without a name are reserved and belong to no cause.
constexpr std::uint64_t mask_of_cause(std::string_view cause) noexcept {
  std::uint64_t mask = 0;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if (reason.cause == cause) mask |= mask_of(reason);
  }
  return mask;
}

}  // namespace gpumeter::amd
