#pragma once

#include <cstddef>
#include <string_view>

#include "collectors/amd/readers/basic.hpp"

/// Readers of files that hold several values as text (sysfs_texts.hpp); file names are as in AmdPaths.
namespace gpumeter::amd {

namespace readers {

Handle bind_ras(AmdContext& context, const ReadSource& source);
Handle bind_aer(AmdContext& context, const ReadSource& source);
Sample read_error_count(AmdContext& context, int handle) noexcept;
Handle bind_highest_level(AmdContext& context, const ReadSource& source);
Sample read_highest_level(AmdContext& context, int handle) noexcept;
Handle bind_current_level(AmdContext& context, const ReadSource& source);
Sample read_current_level(AmdContext& context, int handle) noexcept;
Handle bind_links(AmdContext& context, const ReadSource& source);
Sample read_links(AmdContext& context, int handle) noexcept;
Handle bind_bad_pages(AmdContext& context, const ReadSource& source);
Sample read_bad_pages(AmdContext& context, int handle) noexcept;

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
constexpr AmdReader ras_count(std::string_view name, std::size_t severity) noexcept {
  return {readers::bind_ras, readers::read_error_count, {name, severity}};
}

/// Errors of one kind, by index into kAerKinds, of an aer_dev_* file.
constexpr AmdReader aer_count(std::string_view name, std::size_t kind) noexcept {
  return {readers::bind_aer, readers::read_error_count, {name, kind}};
}

/// In MHz, of a pp_dpm_* file.
constexpr AmdReader clock_limit(std::string_view name) noexcept {
  return {readers::bind_highest_level, readers::read_highest_level, {name}};
}
constexpr AmdReader clock_level(std::string_view name) noexcept {
  return {readers::bind_current_level, readers::read_current_level, {name}};
}

/// Of xgmi_num_links: the card's links to all the others.
constexpr AmdReader links(std::string_view name) noexcept {
  return {readers::bind_links, readers::read_links, {name}};
}

/// Of ras/gpu_vram_bad_pages: how many pages the driver has taken out of use (flag R). Those that wait to be
/// (P) and those that could not be since they are in use (F) do not count.
constexpr AmdReader bad_pages(std::string_view name) noexcept {
  return {readers::bind_bad_pages, readers::read_bad_pages, {name}};
}

}  // namespace gpumeter::amd
