#pragma once

#include <cstddef>
#include <string_view>

/// The error counts of a PCI Express device, for every vendor: the files aer_dev_correctable,
/// aer_dev_nonfatal and aer_dev_fatal of its function. The kernel counts them itself, so reading them does
/// not wake the device (Documentation/PCI/pcieaer-howto). counts.hpp parses the files.
namespace gpumeter::aer {

/// An error of the PCI Express base specification: the kernel's name (drivers/pci/pcie/aer.c,
/// aer_correctable_error_string and aer_uncorrectable_error_string, up to 6.18) and gpumeter's.
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
inline constexpr std::size_t kAerCorrectable = 8;  // the first 8 kinds are correctable

}  // namespace gpumeter::aer
