#pragma once

#include <cstdint>
#include <string_view>

#include "collectors/table/row.hpp"
#include "collectors/tree/context.hpp"

/// The sources of rows. Names are as in TreePaths. A row binds if its file exists.
namespace gpumeter::tree {

using Row = MetricRow<TreeContext>;
using Source = RowSource<TreeContext>;

/// A share of time. The rate of a counter needs two passes, so it is missing after a gap without an error.
inline constexpr Traits kShare{.min = 0, .max = 1, .forgets = true};
/// The same for what clients report: a class of engines is known from its first client on.
inline constexpr Traits kClientRatio{.min = 0, .max = 1, .forgets = true, .counted_by = "fdinfo"};
inline constexpr Traits kClientSeconds{.min = 0, .forgets = true, .counted_by = "fdinfo"};

/// Part of the host's memory, see HostMemory.
enum class HostPart : std::uint8_t { size, used, free };

namespace readers {

Reader bind_integer(TreeContext& context, const ReadSource& source);
Reader bind_number(TreeContext& context, const ReadSource& source);
Reader bind_generation(TreeContext& context, const ReadSource& source);
Reader bind_word(TreeContext& context, const ReadSource& source);
Reader bind_field(TreeContext& context, const ReadSource& source);
Reader bind_cell(TreeContext& context, const ReadSource& source);
Reader bind_sum(TreeContext& context, const ReadSource& source);
Reader bind_busiest(TreeContext& context, const ReadSource& source);
Reader bind_busiest_rate(TreeContext& context, const ReadSource& source);
Reader bind_wrapping_sum(TreeContext& context, const ReadSource& source);
Reader bind_busiest_row(TreeContext& context, const ReadSource& source);
Reader bind_busiest_row_rate(TreeContext& context, const ReadSource& source);
Reader bind_margin(TreeContext& context, const ReadSource& source);
Reader bind_rail(TreeContext& context, const ReadSource& source);
Reader bind_rail_voltage(TreeContext& context, const ReadSource& source);
Reader bind_host_memory(TreeContext& context, const ReadSource& source);
Reader bind_asleep(TreeContext& context, const ReadSource& source);
Reader bind_engine(TreeContext& context, const ReadSource& source);
Reader bind_clients_busy(TreeContext& context, const ReadSource& source);
Reader bind_clients_utilization(TreeContext& context, const ReadSource& source);

}  // namespace readers

/// The integer of a file. `at_least_ms`: the driver wants no more than one read in this time; in between, the
/// last value is used.
constexpr Source file(std::string_view name, std::uint64_t at_least_ms = 0) noexcept {
  return {readers::bind_integer, {name, at_least_ms}};
}

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

/// "gpu_stats: timestamp.runtime": the same two for the rows of a table, with a column of timestamps in the
/// unit of the column of busy time. `per` as in in_table().
constexpr Source busiest_row(std::string_view name, std::uint64_t per = 0) noexcept {
  return {readers::bind_busiest_row, {name, per}};
}
constexpr Source busiest_row_share(std::string_view name) noexcept {
  return {readers::bind_busiest_row_rate, {name}};
}

/// The lowest limit of a sensor (_crit, _emergency, _max) minus its _input. `name`: "hwmon/temp{edge}", or
/// "thermal{gpu-thermal}" for the critical trip point of a zone minus its temperature.
constexpr Source margin(std::string_view name) noexcept { return {readers::bind_margin, {name}}; }

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

/// Clients' busy time of a class of engines, of the busiest class, and the latter as a share of time. Only
/// for a Shape with `has_clients`.
constexpr Source engine(EngineClass which) noexcept {
  return {readers::bind_engine, {"fdinfo drm-engine-*", static_cast<std::uint64_t>(which)}};
}
constexpr Source clients_busy() noexcept { return {readers::bind_clients_busy, {"fdinfo drm-engine-*"}}; }
constexpr Source clients_share() noexcept {
  return {readers::bind_clients_utilization, {"fdinfo drm-engine-*"}};
}

}  // namespace gpumeter::tree
