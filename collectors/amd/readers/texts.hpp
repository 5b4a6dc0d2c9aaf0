#pragma once

#include <cstddef>
#include <string_view>

#include "collectors/amd/readers/basic.hpp"
#include "collectors/sources/aer.hpp"

/// Readers of values from files with several values or words (sysfs_texts.hpp); file names are as in
/// AmdPaths.
namespace gpumeter::amd {

namespace readers {

Reader bind_ras(AmdContext& context, const ReadSource& source);
Reader bind_aer(AmdContext& context, const ReadSource& source);
Reader bind_highest_level(AmdContext& context, const ReadSource& source);
Reader bind_current_level(AmdContext& context, const ReadSource& source);
Reader bind_links(AmdContext& context, const ReadSource& source);
Reader bind_bad_pages(AmdContext& context, const ReadSource& source);
Reader bind_mode(AmdContext& context, const ReadSource& source);

}  // namespace readers

/// A severity counted in ras/<block>_err_count: the driver's name and gpumeter's.
struct RasSeverity {
  std::string_view key;
  std::string_view severity;
};
inline constexpr RasSeverity kRasSeverities[] = {
    {"ce", "corrected"}, {"ue", "uncorrected"}, {"de", "deferred"}};

using aer::kAerCorrectable;
using aer::kAerKinds;

/// Errors of one severity, by index into kRasSeverities, of "ras/<block>_err_count".
constexpr AmdSource ras_count(std::string_view name, std::size_t severity) noexcept {
  return {readers::bind_ras, {name, severity}};
}

/// Errors of one kind, by index into kAerKinds, of an aer_dev_* file.
constexpr AmdSource aer_count(std::string_view name, std::size_t kind) noexcept {
  return {readers::bind_aer, {name, kind}};
}

/// The clock in MHz, from a pp_dpm_* file.
constexpr AmdSource clock_limit(std::string_view name) noexcept {
  return {readers::bind_highest_level, {name}};
}
constexpr AmdSource clock_level(std::string_view name) noexcept {
  return {readers::bind_current_level, {name}};
}

/// The card's links to all others, from xgmi_num_links.
constexpr AmdSource links(std::string_view name) noexcept { return {readers::bind_links, {name}}; }

/// The number of pages that the driver has retired (flag R), from ras/gpu_vram_bad_pages. Pages that wait for
/// retirement (P), and pages that could not be retired because they are in use (F), do not count.
constexpr AmdSource bad_pages(std::string_view name) noexcept { return {readers::bind_bad_pages, {name}}; }

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
    // AMD has no numbered performance state. A card stays slow permanently only through a level that was
    // set by hand.
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

/// 1 while the mode at that index in kModes is active.
constexpr AmdSource mode(std::size_t index) noexcept {
  return {readers::bind_mode, {kModes[index].file, index}};
}

}  // namespace gpumeter::amd
