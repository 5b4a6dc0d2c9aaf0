#pragma once

#include <array>

#include "collectors/amd/readers/texts.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/table/row.hpp"

/// Rows from lists of clock levels, the video engine, the links, and the active modes.
namespace gpumeter::amd {

inline constexpr Traits kLevelHertz{.min = 0, .max = 20e9, .zero_is_unknown = true};

// clang-format off
inline constexpr auto kSysfsRows = std::to_array<Row>({
    // VCN decodes and encodes, and no source separates the two. The label is `decode`, since all of its
    // generations decode. The driver's field still has the older decoder's name, average_uvd_activity. Two
    // series of one number would count its time twice.
    {&catalog::engine_utilization, {"engine", "decode"}, busy("vcn_busy_percent"), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},

    // The limits change with overdrive settings. The driver writes 0 if the limit is unknown.
    {&catalog::clock_max, {"clock", "graphics"}, clock_limit("pp_dpm_sclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "memory"}, clock_limit("pp_dpm_mclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "soc"}, clock_limit("pp_dpm_socclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "fabric"}, clock_limit("pp_dpm_fclk"), kMega, Tier::slow, {}, kLevelHertz},
    {&catalog::clock_max, {"clock", "video"}, clock_limit("pp_dpm_vclk"), kMega, Tier::slow, {}, kLevelHertz},

    // Used if neither hwmon nor gpu_metrics has the clocks: each of these files costs a separate call to the
    // firmware.
    {&catalog::clock, {"clock", "graphics"}, clock_level("pp_dpm_sclk"), kMega, Tier::fast, {}, kLevelHertz},
    {&catalog::clock, {"clock", "memory"}, clock_level("pp_dpm_mclk"), kMega, Tier::fast, {}, kLevelHertz},
    {&catalog::clock, {"clock", "soc"}, clock_level("pp_dpm_socclk"), kMega, Tier::normal, {}, kLevelHertz},
    {&catalog::clock, {"clock", "fabric"}, clock_level("pp_dpm_fclk"), kMega, Tier::normal, {}, kLevelHertz},
    {&catalog::clock, {"clock", "video"}, clock_level("pp_dpm_vclk"), kMega, Tier::normal, {}, kLevelHertz},

    // xgmi_error is not read. A read resets it, so that other readers lose the count. While the counting is
    // off, each read also logs a kernel error (kernel 6.12, amdgpu_xgmi_show_error).
    {&catalog::interconnect_links, {"kind", "xgmi"}, links("xgmi_num_links"), 1, Tier::slow},
    {&catalog::retired_pages, {"cause", "uncorrected"}, bad_pages("ras/gpu_vram_bad_pages"), 1, Tier::slow},
});

// The card's partition modes, and the performance level that was set.
inline constexpr auto kModeRows = each_place(kModes, [](std::size_t index, const Mode& of) {
  return Row{&catalog::mode, {"mode", of.mode, "state", of.state}, mode(index), 1, Tier::slow, {}, of.wakes ? kUsual : kNeverWakes};
});
// clang-format on

}  // namespace gpumeter::amd
