#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "collectors/api/catalog.hpp"
#include "collectors/files/context.hpp"
#include "collectors/table/row.hpp"

/// The sources of rows. Names are as in Paths. A row binds if its file exists, unless a read at attach shows
/// that the device lacks the value: the next row of the series is then used. A device that sleeps is not read
/// for that, so its rows bind again when it is awake.
namespace gpumeter::files {

/// A share of time. The rate of a counter needs two passes, so it is missing after a gap without an error.
inline constexpr Traits kShare{.min = 0, .max = 1, .forgets = true};
/// The same for what clients report: a class of engines is known from its first client on.
inline constexpr Traits kClientRatio{.min = 0, .max = 1, .forgets = true, .counted_by = "fdinfo"};
inline constexpr Traits kClientSeconds{.min = 0, .forgets = true, .counted_by = "fdinfo"};

/// Part of the host's memory, see HostMemory.
enum class HostPart : std::uint8_t { size, used, free };

/// The limits of a sensor that count for its margin. `_max` is a limit of some drivers; xe reports 60 degrees
/// for the package of a B-series card, which any load passes.
enum class Limits : std::uint8_t { all, hard };

namespace readers {

inline constexpr Sample kNone = Sample::miss(ReadStatus::unsupported);

/// Returns `read` as the row's reader unless the device lacks the value.
template <class Read>
Reader probed(Context& context, Read read) {
  if (context.awake() && read().status == ReadStatus::unsupported) return {};
  return read;
}

inline Sample sample_of(const std::optional<double>& value) noexcept {
  return value ? Sample::of(*value) : kNone;
}

/// The number after `key` in a text file of the device, see count_of(). A text without any number is a failed
/// read.
Reader bind_count(Context& context, std::string_view name, std::string_view key);

Reader bind_integer(Context& context, const ReadSource& source);
Reader bind_constant(Context& context, const ReadSource& source);
Reader bind_nonzero(Context& context, const ReadSource& source);
Reader bind_number(Context& context, const ReadSource& source);
Reader bind_generation(Context& context, const ReadSource& source);
Reader bind_word(Context& context, const ReadSource& source);
Reader bind_field(Context& context, const ReadSource& source);
Reader bind_cell(Context& context, const ReadSource& source);
Reader bind_sum(Context& context, const ReadSource& source);
Reader bind_busiest(Context& context, const ReadSource& source);
Reader bind_busiest_rate(Context& context, const ReadSource& source);
Reader bind_wrapping_sum(Context& context, const ReadSource& source);
Reader bind_busiest_row(Context& context, const ReadSource& source);
Reader bind_busiest_row_rate(Context& context, const ReadSource& source);
Reader bind_mean_rate(Context& context, const ReadSource& source);
Reader bind_difference(Context& context, const ReadSource& source);
Reader bind_quotient(Context& context, const ReadSource& source);
Reader bind_margin(Context& context, const ReadSource& source);
Reader bind_rail(Context& context, const ReadSource& source);
Reader bind_rail_voltage(Context& context, const ReadSource& source);
Reader bind_host_memory(Context& context, const ReadSource& source);
Reader bind_asleep(Context& context, const ReadSource& source);
Reader bind_clients_busy(Context& context, const ReadSource& source);
Reader bind_clients_share(Context& context, const ReadSource& source);
Reader bind_aer(Context& context, const ReadSource& source);

}  // namespace readers

/// The integer of a file. `at_least_ms`: the driver wants no more than one read in this time; in between, the
/// last value is used.
constexpr Source file(std::string_view name, std::uint64_t at_least_ms = 0) noexcept {
  return {readers::bind_integer, {name, at_least_ms}};
}

/// The integer of a file that is constant while the driver is loaded: read once.
constexpr Source constant(std::string_view name) noexcept { return {readers::bind_constant, {name}}; }

/// The integer of a file, unless it is 0 at attach: a limit that is off, a counter that the firmware does not
/// keep.
constexpr Source nonzero(std::string_view name) noexcept { return {readers::bind_nonzero, {name}}; }

/// The number at the start of a text: "37@800000000Hz", "850 W", "0.5".
constexpr Source number(std::string_view name) noexcept { return {readers::bind_number, {name}}; }

/// The generation of a PCI Express link, from its speed: "16.0 GT/s PCIe" is 4. "Unknown" is no value.
constexpr Source generation(std::string_view name) noexcept { return {readers::bind_generation, {name}}; }

/// "status = operational|ready": 1 if the file's word, the one in brackets if there are any, is among them.
constexpr Source word(std::string_view name) noexcept { return {readers::bind_word, {name}}; }

/// "stats/power/utilization: POWER_STATUS_VALID": field `index` of a list with commas, if its first field is
/// that word. Otherwise there is no value now.
constexpr Source field(std::string_view name, std::uint64_t index) noexcept {
  return {readers::bind_field, {name, index}};
}

/// "gpu_stats: bin.runtime": a cell of a table, see cell(), divided by `per` (0: by 1).
constexpr Source in_table(std::string_view name, std::uint64_t per = 0) noexcept {
  return {readers::bind_cell, {name, per}};
}

/// The sum of all files that match.
constexpr Source sum(std::string_view name) noexcept { return {readers::bind_sum, {name}}; }

/// The busy time of the busiest of several counters of busy time: the sum over passes of the largest growth.
/// Nothing is counted over a gap.
constexpr Source busiest(std::string_view name) noexcept { return {readers::bind_busiest, {name}}; }
/// The same as a share of the time between two reads; the counters' unit is 1 µs. `at_least_ms` as in file().
constexpr Source busiest_share(std::string_view name, std::uint64_t at_least_ms = 0) noexcept {
  return {readers::bind_busiest_rate, {name, at_least_ms}};
}

/// The growth of several counters of 32 bits that wrap, summed.
constexpr Source wrapping_sum(std::string_view name) noexcept { return {readers::bind_wrapping_sum, {name}}; }

/// "gpu_stats: timestamp.runtime": busiest() and busiest_share() for the rows of a table, with a column of
/// timestamps in the unit of the column of busy time. `per` as in in_table().
constexpr Source busiest_row(std::string_view name, std::uint64_t per = 0) noexcept {
  return {readers::bind_busiest_row, {name, per}};
}
constexpr Source busiest_row_share(std::string_view name) noexcept {
  return {readers::bind_busiest_row_rate, {name}};
}

/// The mean growth per second of a counter that is not 0 at attach: the power, from a counter of energy.
constexpr Source mean_rate(std::string_view name) noexcept { return {readers::bind_mean_rate, {name}}; }

/// "a - b"; a is constant.
constexpr Source difference(std::string_view names) noexcept { return {readers::bind_difference, {names}}; }

/// "a / b"; b is constant, and the row does not bind if it is 0.
constexpr Source quotient(std::string_view names) noexcept { return {readers::bind_quotient, {names}}; }

/// The lowest limit of a sensor (_crit, _emergency and, with Limits::all, _max) minus its _input. A limit of
/// 0 is not set. `name`: "hwmon/temp{edge}", or "thermal{gpu-thermal}" for the critical trip point of a zone
/// minus its temperature.
constexpr Source margin(std::string_view name, Limits limits = Limits::hard) noexcept {
  return {readers::bind_margin, {name, static_cast<std::uint64_t>(limits)}};
}

/// "board{ina3221}/in{VDD_IN}_input": voltage times current of a channel; the current's number is the
/// voltage's.
constexpr Source rail(std::string_view name) noexcept { return {readers::bind_rail, {name}}; }

/// The voltage of such a channel.
constexpr Source rail_voltage(std::string_view name) noexcept { return {readers::bind_rail_voltage, {name}}; }

/// The host's memory, for a device that has none of its own.
constexpr Source host_memory(HostPart part) noexcept {
  return {readers::bind_host_memory, {"/proc/meminfo", static_cast<std::uint64_t>(part)}};
}

/// 1 while the device sleeps. Not bound if the kernel does not manage the device's power.
constexpr Source asleep(std::string_view name) noexcept { return {readers::bind_asleep, {name}}; }

/// Clients' busy time of a class of engines or of the busiest class, and the same as a share of the time
/// between two scans. Only for a Kind whose clients are scanned.
inline constexpr std::uint64_t kBusiestClass = kEngineClassCount;
constexpr Source clients_busy(std::uint64_t which = kBusiestClass) noexcept {
  return {readers::bind_clients_busy, {"/proc/PID/fdinfo drm-engine-*, drm-cycles-*", which}};
}
constexpr Source clients_share(std::uint64_t which = kBusiestClass) noexcept {
  return {readers::bind_clients_share, {"/proc/PID/fdinfo drm-engine-*, drm-cycles-*", which}};
}

/// Errors of one kind, by index into kAerKinds (pci_rows.hpp), of an aer_dev_* file.
constexpr Source aer_count(std::string_view name, std::size_t kind) noexcept {
  return {readers::bind_aer, {name, kind}};
}

// Rows of any PCI Express device.

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
