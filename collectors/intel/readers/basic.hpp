#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collectors/intel/context.hpp"
#include "collectors/table/row.hpp"

/// Readers of values from a card's files; file names are as in IntelPaths. A file may show at attach that the
/// card lacks the value. The row then does not bind, so that the next row of the series is used.
namespace gpumeter::intel {

using Row = MetricRow<IntelContext>;
using IntelSource = RowSource<IntelContext>;

namespace readers {

Reader bind_file(IntelContext& context, const ReadSource& source);
Reader bind_nonzero(IntelContext& context, const ReadSource& source);
Reader bind_constant(IntelContext& context, const ReadSource& source);
Reader bind_mean_power(IntelContext& context, const ReadSource& source);
Reader bind_sensor(IntelContext& context, const ReadSource& source);
Reader bind_margin(IntelContext& context, const ReadSource& source);
Reader bind_fan_share(IntelContext& context, const ReadSource& source);
Reader bind_generation(IntelContext& context, const ReadSource& source);
Reader bind_asleep(IntelContext& context, const ReadSource& source);
Reader bind_aer(IntelContext& context, const ReadSource& source);
Reader bind_clock(IntelContext& context, const ReadSource& source);
Reader bind_clock_limit(IntelContext& context, const ReadSource& source);
Reader bind_idle(IntelContext& context, const ReadSource& source);
Reader bind_throttle(IntelContext& context, const ReadSource& source);
Reader bind_errors(IntelContext& context, const ReadSource& source);
Reader bind_memory(IntelContext& context, const ReadSource& source);

}  // namespace readers

/// The integer of a file.
constexpr IntelSource file(std::string_view name) noexcept { return {readers::bind_file, {name}}; }

/// The same, unless it is 0 at attach: a limit that is off, a counter that the firmware does not keep.
constexpr IntelSource nonzero(std::string_view name) noexcept { return {readers::bind_nonzero, {name}}; }

/// The integer of a file that is constant while the driver is loaded: read once.
constexpr IntelSource constant(std::string_view name) noexcept { return {readers::bind_constant, {name}}; }

/// The mean power since the last reading, from a counter of energy; neither driver has a file of power.
constexpr IntelSource mean_power(std::string_view energy) noexcept {
  return {readers::bind_mean_power, {energy}};
}

/// A sensor's temperature, or one of its limits. `sensor`: "hwmon/temp{pkg}".
enum class SensorPart : std::uint64_t { input, max, critical, emergency };
constexpr IntelSource temperature(std::string_view sensor, SensorPart part) noexcept {
  return {readers::bind_sensor, {sensor, static_cast<std::uint64_t>(part)}};
}

/// Lowest limit (_max, _crit, _emergency) of a sensor minus its _input.
constexpr IntelSource margin(std::string_view sensor) noexcept { return {readers::bind_margin, {sensor}}; }

/// PCIe generation of a link speed given as text.
constexpr IntelSource generation(std::string_view name) noexcept {
  return {readers::bind_generation, {name}};
}

/// The speed of a fan ("hwmon/fan1") as a share of the highest, which few kernels report.
constexpr IntelSource fan_share(std::string_view fan) noexcept { return {readers::bind_fan_share, {fan}}; }

/// 1 while the card sleeps. Not bound if the kernel does not manage the card's power.
constexpr IntelSource asleep(std::string_view name) noexcept { return {readers::bind_asleep, {name}}; }

/// Errors of one kind, by index into aer::kAerKinds, of an aer_dev_* file.
constexpr IntelSource aer_count(std::string_view name, std::size_t kind) noexcept {
  return {readers::bind_aer, {name, kind}};
}

enum class GtKind : std::uint64_t { graphics, media };

/// The highest clock of the GTs of a kind, and the highest that the hardware allows.
constexpr IntelSource clock(GtKind kind) noexcept {
  return {readers::bind_clock, {"gt*/act_freq", static_cast<std::uint64_t>(kind)}};
}
constexpr IntelSource clock_limit(GtKind kind) noexcept {
  return {readers::bind_clock_limit, {"gt*/rp0_freq", static_cast<std::uint64_t>(kind)}};
}

/// Milliseconds that a GT has spent in RC6 or C6.
constexpr IntelSource idle(std::uint64_t gt) noexcept {
  return {readers::bind_idle, {"gt*/idle_residency_ms", gt}};
}

/// 1 while any reason of the mask is active.
constexpr IntelSource throttle(ThrottleMask mask) noexcept {
  return {readers::bind_throttle, {"gt*/throttle", mask}};
}

/// Errors by index in ras::kSeverities and in ras::kErrors.
constexpr IntelSource error_count(std::size_t severity, std::size_t error) noexcept {
  return {readers::bind_errors, {"netlink drm-ras", severity << 8 | error}};
}

/// A number of the card's memory regions.
enum class MemoryPart : std::uint64_t { size, used, free, visible_size, visible_used };
constexpr IntelSource memory_region(MemoryPart part) noexcept {
  return {readers::bind_memory, {"DRM_*_QUERY_MEM*_REGIONS", static_cast<std::uint64_t>(part)}};
}

}  // namespace gpumeter::intel
