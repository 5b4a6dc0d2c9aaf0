#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectors/amd/amd_context.hpp"
#include "collectors/amd/gpu_metrics_layout.hpp"
#include "collectors/support/metric_row.hpp"

/// How the rows of amd_metrics.cpp get their values; file names are as in AmdPaths. A file that says at
/// attach that the card lacks the value does not bind, so that the next row of the series has its turn. A
/// field of gpu_metrics binds by its version alone, since firmware was seen to give 0 at first and values
/// later.
namespace gpumeter::amd {

using AmdReader = Reader<AmdContext>;
using Handle = std::optional<int>;

namespace readers {

Handle bind_file(AmdContext& context, const ReadSource& source);
Sample read_file(AmdContext& context, int handle) noexcept;
Handle bind_constant(AmdContext& context, const ReadSource& source);
Sample read_busy(AmdContext& context, int handle) noexcept;
Handle bind_difference(AmdContext& context, const ReadSource& source);
Handle bind_margin(AmdContext& context, const ReadSource& source);
Sample read_difference(AmdContext& context, int handle) noexcept;
Handle bind_quotient(AmdContext& context, const ReadSource& source);
Sample read_quotient(AmdContext& context, int handle) noexcept;
Handle bind_generation(AmdContext& context, const ReadSource& source);
Sample read_generation(AmdContext& context, int handle) noexcept;
Handle bind_asleep(AmdContext& context, const ReadSource& source);
Sample read_asleep(AmdContext& context, int handle) noexcept;
Handle bind_blob(AmdContext& context, const ReadSource& source);
Sample read_blob(AmdContext& context, int handle) noexcept;
Handle bind_throttle(AmdContext& context, const ReadSource& source);
Sample read_throttle(AmdContext& context, int handle) noexcept;

inline constexpr std::string_view kBlobPrefix = "gpu_metrics.";
inline constexpr std::string_view kThrottleField = "gpu_metrics.indep_throttle_status";

consteval std::size_t known_field(std::string_view name) {
  const std::size_t field = blob_field(name.substr(kBlobPrefix.size()));
  return name.starts_with(kBlobPrefix) && field < kBlobFieldCount ? field : throw name;
}

}  // namespace readers

/// The integer of a file.
constexpr AmdReader file(std::string_view name) noexcept {
  return {readers::bind_file, readers::read_file, {name}};
}

/// The same for what stays as it is while the driver is loaded: read once.
constexpr AmdReader constant(std::string_view name) noexcept {
  return {readers::bind_constant, readers::read_file, {name}};
}

/// A percentage that the firmware now and then overshoots at full load.
constexpr AmdReader busy(std::string_view name) noexcept {
  return {readers::bind_file, readers::read_busy, {name}};
}

/// "a - b"; a is a constant.
constexpr AmdReader difference(std::string_view names) noexcept {
  return {readers::bind_difference, readers::read_difference, {names}};
}

/// "a / b"; b is a constant.
constexpr AmdReader quotient(std::string_view names) noexcept {
  return {readers::bind_quotient, readers::read_quotient, {names}};
}

/// Lowest limit (_crit, _emergency) of a sensor minus its _input. `sensor`: "hwmon/temp{edge}".
constexpr AmdReader margin(std::string_view sensor) noexcept {
  return {readers::bind_margin, readers::read_difference, {sensor}};
}

/// PCIe generation of a link speed in words.
constexpr AmdReader generation(std::string_view name) noexcept {
  return {readers::bind_generation, readers::read_generation, {name}};
}

/// 1 while the card sleeps. Nothing where the kernel does not manage its power.
constexpr AmdReader asleep(std::string_view name) noexcept {
  return {readers::bind_asleep, readers::read_asleep, {name}};
}

/// A field of gpu_metrics, in base units: "gpu_metrics.voltage_soc".
consteval AmdReader blob(std::string_view name) {
  return {readers::bind_blob, readers::read_blob, {name, readers::known_field(name)}};
}

/// 1 while any of the chip-independent throttler bits of `mask` is set.
constexpr AmdReader throttle(std::uint64_t mask) noexcept {
  return {readers::bind_throttle, readers::read_throttle, {readers::kThrottleField, mask}};
}

}  // namespace gpumeter::amd
