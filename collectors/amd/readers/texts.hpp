#pragma once

#include <cstddef>
#include <string_view>

#include "collectors/amd/readers/basic.hpp"

/// How rows get their values from files of several values or words (sysfs_texts.hpp); file names are as in
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

/// What a ras/<block>_err_count counts, in the driver's word and in ours.
struct RasSeverity {
  std::string_view key;
  std::string_view severity;
};
inline constexpr RasSeverity kRasSeverities[] = {
    {"ce", "corrected"}, {"ue", "uncorrected"}, {"de", "deferred"}};

/// An error of the PCI Express base specification, in the kernel's word (drivers/pci/pcie/aer.c,
/// aer_correctable_error_string and aer_uncorrectable_error_string, up to 6.18) and in ours.
struct AerKind {
  std::string_view key;
  std::string_view kind;
};
inline constexpr AerKind kAerKinds[] = {
    {"RxErr", "receiver"},
    {"BadTLP", "bad_tlp"},
    {"BadDLLP", "bad_dllp"},
    {"Rollover", "replay_rollover"},
    {"Timeout", "replay_timeout"},
    {"NonFatalErr", "advisory_nonfatal"},
    {"CorrIntErr", "corrected_internal"},
    {"HeaderOF", "header_log_overflow"},
    {"Undefined", "undefined"},
    {"DLP", "data_link_protocol"},
    {"SDES", "surprise_down"},
    {"TLP", "poisoned_tlp"},
    {"FCP", "flow_control_protocol"},
    {"CmpltTO", "completion_timeout"},
    {"CmpltAbrt", "completer_abort"},
    {"UnxCmplt", "unexpected_completion"},
    {"RxOF", "receiver_overflow"},
    {"MalfTLP", "malformed_tlp"},
    {"ECRC", "ecrc"},
    {"UnsupReq", "unsupported_request"},
    {"ACSViol", "acs_violation"},
    {"UncorrIntErr", "uncorrectable_internal"},
    {"BlockedTLP", "multicast_blocked_tlp"},
    {"AtomicOpBlocked", "atomic_egress_blocked"},
    {"TLPBlockedErr", "tlp_prefix_blocked"},
    {"PoisonTLPBlocked", "poisoned_tlp_egress_blocked"},
    {"DMWrReqBlocked", "deferrable_write_egress_blocked"},
    {"IDECheck", "ide_check_failed"},
    {"MisIDETLP", "misrouted_ide_tlp"},
    {"PCRC_CHECK", "pcrc_check_failed"},
    {"TLPXlatBlocked", "tlp_translation_egress_blocked"},
};
inline constexpr std::size_t kAerCorrectable = 8;  // as many from the front are correctable

/// Errors of one severity, by index into kRasSeverities, of "ras/<block>_err_count".
constexpr AmdSource ras_count(std::string_view name, std::size_t severity) noexcept {
  return {readers::bind_ras, {name, severity}};
}

/// Errors of one kind, by index into kAerKinds, of an aer_dev_* file.
constexpr AmdSource aer_count(std::string_view name, std::size_t kind) noexcept {
  return {readers::bind_aer, {name, kind}};
}

/// In MHz, of a pp_dpm_* file.
constexpr AmdSource clock_limit(std::string_view name) noexcept {
  return {readers::bind_highest_level, {name}};
}
constexpr AmdSource clock_level(std::string_view name) noexcept {
  return {readers::bind_current_level, {name}};
}

/// Of xgmi_num_links: the card's links to all the others.
constexpr AmdSource links(std::string_view name) noexcept { return {readers::bind_links, {name}}; }

/// Of ras/gpu_vram_bad_pages: how many pages the driver has taken out of use (flag R). Those that wait to be
/// (P) and those that could not be since they are in use (F) do not count.
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
constexpr AmdSource mode(std::size_t index) noexcept {
  return {readers::bind_mode, {kModes[index].file, index}};
}

}  // namespace gpumeter::amd
