#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "collectors/amd/context.hpp"
#include "collectors/amd/kfd/topology.hpp"
#include "collectors/table/row.hpp"

/// Readers of integers from files, and of the compute driver's facts of the card; file names are as in
/// AmdPaths. A file may show at attach that the card lacks the value. The row then does not bind, so that the
/// next row of the series is used.
namespace gpumeter::amd {

using Row = MetricRow<AmdContext>;
using AmdSource = RowSource<AmdContext>;

namespace readers {

/// Returns `read` as the row's reader unless the card lacks the value. A sleeping card is not read, since the
/// read would wake it.
template <class Read>
Reader probed(AmdContext& context, Read read) {
  if (context.awake() && read().status == ReadStatus::unsupported) return {};
  return read;
}

inline Sample sample_of(const std::optional<double>& value) noexcept {
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::unsupported);
}

Reader bind_file(AmdContext& context, const ReadSource& source);
Reader bind_power(AmdContext& context, const ReadSource& source);
Reader bind_constant(AmdContext& context, const ReadSource& source);
Reader bind_busy(AmdContext& context, const ReadSource& source);
Reader bind_difference(AmdContext& context, const ReadSource& source);
Reader bind_quotient(AmdContext& context, const ReadSource& source);
Reader bind_margin(AmdContext& context, const ReadSource& source);
Reader bind_link_generation(AmdContext& context, const ReadSource& source);
Reader bind_link_lanes(AmdContext& context, const ReadSource& source);
Reader bind_asleep(AmdContext& context, const ReadSource& source);
Reader bind_clients_busy(AmdContext& context, const ReadSource& source);
Reader bind_clients_utilization(AmdContext& context, const ReadSource& source);
Reader bind_peak(AmdContext& context, const ReadSource& source);
Reader bind_part_peak(AmdContext& context, const ReadSource& source);
Reader bind_part_memory(AmdContext& context, const ReadSource& source);

}  // namespace readers

/// The integer of a file.
constexpr AmdSource file(std::string_view name) noexcept { return {readers::bind_file, {name}}; }

/// A power, except the 0 of MI200's second die: the first die measures both (kernel 6.12, aldebaran_ppt.c).
constexpr AmdSource power(std::string_view name) noexcept { return {readers::bind_power, {name}}; }

/// The integer of a file that is constant while the driver is loaded: read once.
constexpr AmdSource constant(std::string_view name) noexcept { return {readers::bind_constant, {name}}; }

/// The busy time of the card's clients, and its share of the time between two scans.
constexpr AmdSource clients_busy(std::string_view name) noexcept {
  return {readers::bind_clients_busy, {name}};
}
constexpr AmdSource clients_utilization(std::string_view name) noexcept {
  return {readers::bind_clients_utilization, {name}};
}

/// A percentage that the firmware sometimes overshoots at full load.
constexpr AmdSource busy(std::string_view name) noexcept { return {readers::bind_busy, {name}}; }

/// "a - b"; a is a constant.
constexpr AmdSource difference(std::string_view names) noexcept {
  return {readers::bind_difference, {names}};
}

/// "a / b"; b is a constant.
constexpr AmdSource quotient(std::string_view names) noexcept { return {readers::bind_quotient, {names}}; }

/// Lowest limit (_crit, _emergency) of a sensor minus its _input. `sensor`: "hwmon/temp{edge}".
constexpr AmdSource margin(std::string_view sensor) noexcept { return {readers::bind_margin, {sensor}}; }

/// PCIe generation of a link speed given as text, and the lanes of a link. Not bound if the card has only a
/// placeholder (pci::has_placeholder_link).
constexpr AmdSource link_generation(std::string_view name) noexcept {
  return {readers::bind_link_generation, {name}};
}
constexpr AmdSource link_lanes(std::string_view name) noexcept { return {readers::bind_link_lanes, {name}}; }

/// 1 while the card sleeps. Not bound if the kernel does not manage the card's power.
constexpr AmdSource asleep(std::string_view name) noexcept { return {readers::bind_asleep, {name}}; }

/// A peak rate of the card, from the compute driver's topology.
constexpr AmdSource peak(Peak which) noexcept {
  return {readers::bind_peak, {"kfd/topology", static_cast<std::uint64_t>(which)}};
}

/// The peak rate of a partition, and its memory.
constexpr AmdSource part_peak(Peak which) noexcept {
  return {readers::bind_part_peak, {"kfd/topology", static_cast<std::uint64_t>(which)}};
}
constexpr AmdSource part_memory() noexcept {
  return {readers::bind_part_memory, {"kfd/topology mem_banks/0 size_in_bytes"}};
}

}  // namespace gpumeter::amd
