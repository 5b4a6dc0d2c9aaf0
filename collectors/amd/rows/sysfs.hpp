#pragma once

#include <array>

#include "collectors/amd/readers/texts.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/table/row.hpp"

/// Rows whose sources are lists of clock levels, the video engine, the links, and the modes in force.
namespace gpumeter::amd {

inline constexpr Traits kLevelHertz{.min = 0, .max = 20e9, .zero_is_unknown = true};

// clang-format off
inline constexpr auto kSysfsRows = std::to_array<Row>({
    // VCN decodes and encodes, and no source separates the two. `decode`, since that is what all of its
    // generations do (the driver's field is still called average_uvd_activity, of the decoder that it was), and
    // two series of one number would count its time twice.
    {&catalog::engine_utilization, {"engine", "decode"}, busy("vcn_busy_percent"), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},

    // The limits move with overdrive settings. The driver writes 0 if the limit is unknown.
    {&catalog::clock_max, {"clock", "graphics"}, clock_limit("pp_dpm_sclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "memory"}, clock_limit("pp_dpm_mclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "soc"}, clock_limit("pp_dpm_socclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "fabric"}, clock_limit("pp_dpm_fclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "video"}, clock_limit("pp_dpm_vclk"), kMega, Tier::slow, {}, kLevelHertz},

    // Where neither hwmon nor gpu_metrics has them: each of these files is a question to the firmware of its own.
    {&catalog::clock, {"clock", "graphics"}, clock_level("pp_dpm_sclk"), kMega, Tier::fast, {}, kLevelHertz},
    {&catalog::clock, {"clock", "memory"}, clock_level("pp_dpm_mclk"), kMega, Tier::fast, {}, kLevelHertz},
    {&catalog::clock, {"clock", "soc"}, clock_level("pp_dpm_socclk"), kMega, Tier::normal, {}, kLevelHertz},
    {&catalog::clock, {"clock", "fabric"}, clock_level("pp_dpm_fclk"), kMega, Tier::normal, {}, kLevelHertz},
    {&catalog::clock, {"clock", "video"}, clock_level("pp_dpm_vclk"), kMega, Tier::normal, {}, kLevelHertz},

    // Not xgmi_error: reading it sets it back, so that other readers lose the count, and while the
    // counting is off each read is an error in the kernel's log (kernel 6.12, amdgpu_xgmi_show_error).
    {&catalog::interconnect_links, {"kind", "xgmi"}, links("xgmi_num_links"), 1, Tier::slow},
    {&catalog::retired_pages, {"cause", "uncorrected"}, bad_pages("ras/gpu_vram_bad_pages"), 1, Tier::slow},
});

// How the card is divided, and which performance level somebody has set.
inline constexpr auto kModeRows = each_place(kModes, [](std::size_t index, const Mode& of) {
  return Row{&catalog::mode, {"mode", of.mode, "state", of.state}, mode(index), 1, Tier::slow, {}, Traits{.wakes = of.wakes}};
});
// clang-format on

}  // namespace gpumeter::amd
