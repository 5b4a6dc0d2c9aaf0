#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectors/amd/context.hpp"
#include "collectors/amd/readers/blob.hpp"
#include "collectors/table/row.hpp"

/// How the rows of amd_metrics.cpp get their values; file names are as in AmdPaths. A file that says at
/// attach that the card lacks the value does not bind, so that the next row of the series has its turn.
namespace gpumeter::amd {

namespace readers {

Handle bind_file(AmdContext& context, const ReadSource& source);
Sample read_file(AmdContext& context, int handle) noexcept;
Handle bind_power(AmdContext& context, const ReadSource& source);
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

}  // namespace readers

/// The integer of a file.
constexpr AmdReader file(std::string_view name) noexcept {
  return {readers::bind_file, readers::read_file, {name}};
}

/// A power, but not the 0 of MI200's second die: the first one measures both (kernel 6.12, aldebaran_ppt.c).
constexpr AmdReader power(std::string_view name) noexcept {
  return {readers::bind_power, readers::read_file, {name}};
}

/// The integer of a file that stays as it is while the driver is loaded: read once.
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

}  // namespace gpumeter::amd
