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

// A source is `{file, "hwmon/fan1_input"}`: one of these functions, a name, and for some a number.

/// The integer of a file. The number: milliseconds, if the driver wants no more than one read in this time;
/// in between, the last value is used.
Reader file(Context& context, const ReadSource& source);

/// The integer of a file that is constant while the driver is loaded: read once.
Reader constant(Context& context, const ReadSource& source);

/// The integer of a file, unless it is 0 at attach: a limit that is off, a counter that the firmware does not
/// keep.
Reader nonzero(Context& context, const ReadSource& source);

/// The number at the start of a text: "37@800000000Hz", "850 W", "0.5".
Reader number(Context& context, const ReadSource& source);

/// The generation of a PCI Express link, from its speed: "16.0 GT/s PCIe" is 4. "Unknown" is no value.
Reader generation(Context& context, const ReadSource& source);

/// "status = operational|ready": 1 if the file's word, the one in brackets if there are any, is among them.
Reader word(Context& context, const ReadSource& source);

/// "stats/power/utilization: POWER_STATUS_VALID": the field with this number of a list with commas, if its
/// first field is that word. Otherwise there is no value now.
Reader field(Context& context, const ReadSource& source);

/// "gpu_stats: bin.runtime": a cell of a table, see cell(), divided by the number (0: by 1).
Reader in_table(Context& context, const ReadSource& source);

/// The sum of all files that match.
Reader sum(Context& context, const ReadSource& source);

/// The busy time of the busiest of several counters of busy time: the sum over passes of the largest growth.
/// Nothing is counted over a gap.
Reader busiest(Context& context, const ReadSource& source);
/// The same as a share of the time between two reads; the counters' unit is 1 µs. The number is that of
/// file().
Reader busiest_share(Context& context, const ReadSource& source);

/// The growth of several counters of 32 bits that wrap, summed.
Reader wrapping_sum(Context& context, const ReadSource& source);

/// "gpu_stats: timestamp.runtime": busiest() and busiest_share() for the rows of a table, with a column of
/// timestamps in the unit of the column of busy time. The number is that of in_table().
Reader busiest_row(Context& context, const ReadSource& source);
Reader busiest_row_share(Context& context, const ReadSource& source);

/// The mean growth per second of a counter that is not 0 at attach: the power, from a counter of energy.
Reader mean_rate(Context& context, const ReadSource& source);

/// "a - b"; a is constant.
Reader difference(Context& context, const ReadSource& source);

/// "a / b"; b is constant, and the row does not bind if it is 0.
Reader quotient(Context& context, const ReadSource& source);

/// The limits of a sensor that count for its margin. `_max` is a limit of some drivers; xe reports 60 degrees
/// for the package of a B-series card, which any load passes.
enum class Limits : std::uint8_t { hard, all };
/// The lowest limit of a sensor (_crit, _emergency and, with Limits::all, _max) minus its _input. A limit of
/// 0 is not set. The name: "hwmon/temp{edge}", or "thermal{gpu-thermal}" for the critical trip point of a
/// zone minus its temperature.
Reader margin(Context& context, const ReadSource& source);

/// "board{ina3221}/in{VDD_IN}_input": voltage times current of a channel; the current's number is the
/// voltage's.
Reader rail(Context& context, const ReadSource& source);

/// The voltage of such a channel.
Reader rail_voltage(Context& context, const ReadSource& source);

/// A HostPart of the host's memory, for a device that has none of its own.
Reader host_memory(Context& context, const ReadSource& source);
inline constexpr std::string_view kHostMemoryFile = "/proc/meminfo";
enum class HostPart : std::uint8_t { size, used, free };

/// 1 while the device sleeps. Not bound if the kernel does not manage the device's power.
Reader asleep(Context& context, const ReadSource& source);

/// Clients' busy time of an EngineClass or of the busiest class, and the same as a share of the time between
/// two scans. Only for a Kind whose clients are scanned.
Reader clients_busy(Context& context, const ReadSource& source);
Reader clients_share(Context& context, const ReadSource& source);
inline constexpr std::string_view kClientFiles = "/proc/PID/fdinfo drm-engine-*, drm-cycles-*";
inline constexpr std::uint64_t kBusiestClass = kEngineClassCount;

/// Errors of one kind, by index into kAerKinds, of an aer_dev_* file.
Reader aer_count(Context& context, const ReadSource& source);

// Rows of any PCI Express device.

/// The PCI Express link of a device that is its card's only function, without a switch of its own. A link of
/// no lanes is down. Reading it wakes the device.
inline constexpr Traits kLinkGeneration{.min = 1, .max = 7};
inline constexpr Traits kLinkLanes{.min = 1, .max = 32, .zero_is_unknown = true};

// clang-format off
inline constexpr auto kLinkRows = std::to_array<Row>({
    {&catalog::pcie_link_generation, {}, {generation, "current_link_speed"}, 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_lanes, {}, {file, "current_link_width"}, 1, Tier::slow, {}, kLinkLanes},
    {&catalog::pcie_link_max_generation, {}, {generation, "max_link_speed"}, 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_max_lanes, {}, {file, "max_link_width"}, 1, Tier::slow, {}, kLinkLanes},
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
  return {&catalog::pcie_errors, labels, {aer_count, file, kind}, 1, Tier::slow, {}, kAerCount};
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
