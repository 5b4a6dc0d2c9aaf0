#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "collectors/api/catalog.hpp"
#include "collectors/files/readers.hpp"

/// Rows of any PCI Express device.
namespace gpumeter::files {

/// The PCI Express link of a device that is its card's only function, without a switch of its own. A link of
/// no lanes is down. Reading it wakes the device.
inline constexpr Traits kLinkGeneration{.min = 1, .max = 7};
inline constexpr Traits kLinkLanes{.min = 1, .max = 32, .zero_is_unknown = true};

// clang-format off
inline constexpr auto kLinkRows = std::to_array<Row>({
    {&catalog::pcie_link_generation, {}, generation("current_link_speed"), 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_lanes, {}, file("current_link_width"), 1, Tier::slow, {}, kLinkLanes},
    {&catalog::pcie_link_max_generation, {}, generation("max_link_speed"), 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_max_lanes, {}, file("max_link_width"), 1, Tier::slow, {}, kLinkLanes},
});
// clang-format on

// The error counts of a PCI Express device: the files aer_dev_correctable, aer_dev_nonfatal and
// aer_dev_fatal. The kernel counts them itself, so reading them does not wake the device
// (Documentation/PCI/pcieaer-howto).

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

inline constexpr Traits kAerCount{.min = 0, .wakes = false};

constexpr Row aer_row(std::string_view file, std::string_view severity, std::size_t kind) noexcept {
  const LabelSet labels("severity", severity, "kind", kAerKinds[kind].kind);
  return {&catalog::pcie_errors, labels, aer_count(file, kind), 1, Tier::slow, {}, kAerCount};
}

/// The error counts since the machine started. Rows of one file are adjacent, so that the file is read once.
consteval auto aer_rows() {
  constexpr std::size_t kKinds = std::size(kAerKinds);
  std::array<Row, 2 * kKinds - kAerCorrectable> rows{};
  auto* end = rows.data();
  for (std::size_t i = 0; i < kAerCorrectable; ++i) *end++ = aer_row("aer_dev_correctable", "correctable", i);
  for (std::size_t i = kAerCorrectable; i < kKinds; ++i) *end++ = aer_row("aer_dev_nonfatal", "nonfatal", i);
  for (std::size_t i = kAerCorrectable; i < kKinds; ++i) *end++ = aer_row("aer_dev_fatal", "fatal", i);
  return rows;
}

}  // namespace gpumeter::files
