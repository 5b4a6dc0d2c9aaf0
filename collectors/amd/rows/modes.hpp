#pragma once

#include <cstddef>
#include <string_view>

#include "collectors/amd/context.hpp"
#include "collectors/amd/readers/blob.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/table/row.hpp"

/// Rows of the modes that are in force on a card: how it is divided, and which performance level somebody has
/// set.
namespace gpumeter::amd {

namespace readers {

Handle bind_mode(AmdContext& context, const ReadSource& source);
Sample read_mode(AmdContext& context, int handle) noexcept;

}  // namespace readers

/// A state of a mode, and the word for it in the mode's file. `wakes`: reading the file wakes a sleeping
/// card.
struct Mode {
  std::string_view mode, file, word, state;
  bool wakes;
};

// clang-format off
inline constexpr Mode kModes[] = {
    {"compute_partition", "current_compute_partition", "SPX", "spx", false},
    {"compute_partition", "current_compute_partition", "DPX", "dpx", false},
    {"compute_partition", "current_compute_partition", "TPX", "tpx", false},
    {"compute_partition", "current_compute_partition", "QPX", "qpx", false},
    {"compute_partition", "current_compute_partition", "CPX", "cpx", false},
    {"memory_partition", "current_memory_partition", "NPS1", "nps1", false},
    {"memory_partition", "current_memory_partition", "NPS2", "nps2", false},
    {"memory_partition", "current_memory_partition", "NPS4", "nps4", false},
    {"memory_partition", "current_memory_partition", "NPS8", "nps8", false},
    // AMD has no numbered performance state; what holds a card slow for good is a level that somebody has set.
    {"performance_level", "power_dpm_force_performance_level", "auto", "auto", true},
    {"performance_level", "power_dpm_force_performance_level", "low", "low", true},
    {"performance_level", "power_dpm_force_performance_level", "high", "high", true},
    {"performance_level", "power_dpm_force_performance_level", "manual", "manual", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_standard", "profile_standard", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_min_sclk", "profile_min_sclk", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_min_mclk", "profile_min_mclk", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_peak", "profile_peak", true},
    {"performance_level", "power_dpm_force_performance_level", "perf_determinism", "perf_determinism", true},
};
// clang-format on

/// 1 while the mode of that index in kModes holds.
constexpr MetricRow<AmdContext> mode_row(std::size_t index) {
  const Mode& mode = kModes[index];
  return {&catalog::mode,
          {"mode", mode.mode, "state", mode.state},
          {readers::bind_mode, readers::read_mode, {mode.file, index}},
          1,
          Tier::slow,
          {},
          Traits{.wakes = mode.wakes}};
}

}  // namespace gpumeter::amd
