#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpumeter {

/// A quantity that the history keeps.
struct Column {
  std::string_view name;  ///< as in the JSON, with the base unit
  double scale = 1;       ///< base units for each stored unit; 16 bits hold 6e-8 to 65504 stored units
};

/// The quantities of a GPU, in the order of kGpuColumns. They are those that the page draws.
enum class Quantity : std::uint8_t {
  utilization,
  compute_active,
  power,
  power_limit,
  memory_used,
  temperature,
  margin,
  clock,
  throttled_power,
  throttled_thermal,
  throttled_hardware,
};

inline constexpr std::array kGpuColumns = {
    Column{"utilization_ratio"},
    Column{"compute_active_ratio"},
    Column{"power_watts"},
    Column{"power_limit_watts"},
    Column{"memory_used_bytes", 1024.0 * 1024 * 1024},
    Column{"temperature_celsius"},         // sensor="core"
    Column{"temperature_margin_celsius"},  // of the sensor that is nearest to its limit
    Column{"clock_hertz", 1e6},            // clock="graphics", or "sm" if there is none
    Column{"throttled_power_ratio"},       // 0 or 1 at a moment, the share of the time in a mean
    Column{"throttled_thermal_ratio"},
    Column{"throttled_hardware_ratio"},  // causes hardware, current and reliability
};
inline constexpr std::size_t kGpuColumnCount = kGpuColumns.size();
static_assert(static_cast<std::size_t>(Quantity::throttled_hardware) + 1 == kGpuColumnCount);

constexpr std::size_t index_of(Quantity quantity) noexcept { return static_cast<std::size_t>(quantity); }

/// The quantities of a run.
inline constexpr std::array kRunColumns = {
    Column{"steps_per_second"},  // over the last 30 s
    Column{"loss"},              // split="train", or the first one if there is none
};
inline constexpr std::size_t kRunColumnCount = kRunColumns.size();

}  // namespace gpumeter
