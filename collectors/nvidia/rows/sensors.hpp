#pragma once

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/readers/activity.hpp"
#include "collectors/nvidia/readers/health.hpp"
#include "collectors/nvidia/rows/traits.hpp"
#include "collectors/table/row.hpp"

/// Rows of memory, power, temperatures, clocks, fans and peaks.
namespace gpumeter::nvidia {

// clang-format off
// The families that a GPU and a MIG instance have in common: one set for each.
struct MemoryFamilies {
  const MetricDescriptor *size, *used, *free, *reserved;
};
constexpr auto memory_rows(const MemoryFamilies& of) {
  return std::to_array<Row>({
    {of.size, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::total>("nvmlDeviceGetMemoryInfo_v2 total"), 1, Tier::normal, {}, kSize},
    {of.used, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::used>("nvmlDeviceGetMemoryInfo_v2 used"), 1, Tier::normal, {}, kPositive},
    {of.free, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::free>("nvmlDeviceGetMemoryInfo_v2 free"), 1, Tier::normal, {}, kPositive},
    {of.reserved, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::reserved>("nvmlDeviceGetMemoryInfo_v2 reserved"), 1, Tier::normal, {}, kPositive},
    {of.size, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::total>("nvmlDeviceGetMemoryInfo total"), 1, Tier::normal, {}, kSize},
    {of.used, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::used>("nvmlDeviceGetMemoryInfo used"), 1, Tier::normal, {}, kPositive},
    {of.free, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::free>("nvmlDeviceGetMemoryInfo free"), 1, Tier::normal, {}, kPositive},
    {of.size, {"memory", "bar1"}, part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::total>("nvmlDeviceGetBAR1MemoryInfo total"), 1, Tier::normal, {}, kSize},
    {of.used, {"memory", "bar1"}, part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::used>("nvmlDeviceGetBAR1MemoryInfo used"), 1, Tier::normal, {}, kPositive},
    {of.free, {"memory", "bar1"}, part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::free>("nvmlDeviceGetBAR1MemoryInfo free"), 1, Tier::normal, {}, kPositive},
  });
}
inline constexpr auto kMemoryRows = memory_rows({&catalog::memory_size, &catalog::memory_used, &catalog::memory_free, &catalog::memory_reserved});

// Never next to vram: these rows bind only if NVML knows no memory of the GPU. The host's file does not prove
// that the GPU answers.
inline constexpr Traits kHostBytes{.min = 0, .wakes = false};
inline constexpr auto kUnifiedMemoryRows = std::to_array<Row>({
    {&catalog::memory_size, {"memory", "unified"}, unified_memory("/proc/meminfo MemTotal", MemoryPart::size), 1, Tier::normal, {}, kHostBytes},
    {&catalog::memory_used, {"memory", "unified"}, unified_memory("/proc/meminfo MemTotal - MemAvailable", MemoryPart::used), 1, Tier::normal, {}, kHostBytes},
    {&catalog::memory_free, {"memory", "unified"}, unified_memory("/proc/meminfo MemAvailable", MemoryPart::free), 1, Tier::normal, {}, kHostBytes},
});

// Field 185 is a mean over a second. On the same chips nvmlDeviceGetPowerUsage is a mean too; on chips
// without the field it is an instantaneous value (GA100 and older; nvml.h).
inline constexpr auto kPowerRows = std::to_array<Row>({
    {&catalog::energy_joules, {}, field("NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 83, Tier::fast), kMilli, Tier::fast, {}, kPositive},
    {&catalog::energy_joules, {}, call<&F::nvmlDeviceGetTotalEnergyConsumption>("nvmlDeviceGetTotalEnergyConsumption"), kMilli, Tier::fast, {}, kPositive},
    {&catalog::energy_joules, {}, sampled("nvmlDeviceGetSamples power", nvml::kPowerSamples), kMilli, Tier::fast, {}, kSampled},
    {&catalog::power_max, {"window", "1m"}, sampled_max("nvmlDeviceGetSamples power", nvml::kPowerSamples), kMilli, Tier::fast, {}, kWatts},
    {&catalog::power_min, {"window", "1m"}, sampled_min("nvmlDeviceGetSamples power", nvml::kPowerSamples), kMilli, Tier::fast, {}, kWatts},
    {&catalog::power, {}, field("NVML_FI_DEV_POWER_AVERAGE", 185, Tier::fast), kMilli, Tier::fast, averaged(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power, {}, call<&F::nvmlDeviceGetPowerUsage>("nvmlDeviceGetPowerUsage"), kMilli, Tier::fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power_instant, {}, field("NVML_FI_DEV_POWER_INSTANT", 186, Tier::fast), kMilli, Tier::fast, {}, kWatts},
    {&catalog::rail_energy_joules, {"rail", "module"}, field("NVML_FI_DEV_ENERGY module", 191, Tier::fast, 1), kMilli, Tier::fast, {}, kPositive},
    {&catalog::power_rail, {"rail", "module"}, field("NVML_FI_DEV_POWER_AVERAGE module", 185, Tier::fast, 1), kMilli, Tier::fast, averaged(catalog::rail_energy_joules), kWatts},
    {&catalog::power_rail, {"rail", "memory"}, field("NVML_FI_DEV_POWER_AVERAGE memory", 185, Tier::fast, 2), kMilli, Tier::fast, averaged(catalog::rail_energy_joules), kWatts},
    {&catalog::power_limit, {"limit", "enforced"}, call<&F::nvmlDeviceGetEnforcedPowerLimit>("nvmlDeviceGetEnforcedPowerLimit"), kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "enforced"}, field("NVML_FI_DEV_POWER_CURRENT_LIMIT", 190, Tier::slow), kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "default"}, call<&F::nvmlDeviceGetPowerManagementDefaultLimit>("nvmlDeviceGetPowerManagementDefaultLimit"), kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "min"}, call<&F::nvmlDeviceGetPowerManagementLimitConstraints>("nvmlDeviceGetPowerManagementLimitConstraints", 0), kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "max"}, call<&F::nvmlDeviceGetPowerManagementLimitConstraints>("nvmlDeviceGetPowerManagementLimitConstraints", 1), kMilli, Tier::slow, {}, kWatts},
});

inline constexpr auto kTemperatureRows = std::to_array<Row>({
    {&catalog::temperature, {"sensor", "core"}, part<&F::nvmlDeviceGetTemperatureV, &nvml::Temperature::celsius>("nvmlDeviceGetTemperatureV"), 1, Tier::fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, call<&F::nvmlDeviceGetTemperature>("nvmlDeviceGetTemperature"), 1, Tier::fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "memory"}, field("NVML_FI_DEV_MEMORY_TEMP", 82, Tier::fast), 1, Tier::fast, {}, kMemoryCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "slowdown"}, tlimit("NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT", 194), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "shutdown"}, tlimit("NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT", 193), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "max"}, tlimit("NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT", 196), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "slowdown"}, call<&F::nvmlDeviceGetTemperatureThreshold>("nvmlDeviceGetTemperatureThreshold slowdown", nvml::kThresholdSlowdown), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "shutdown"}, call<&F::nvmlDeviceGetTemperatureThreshold>("nvmlDeviceGetTemperatureThreshold shutdown", nvml::kThresholdShutdown), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "max"}, call<&F::nvmlDeviceGetTemperatureThreshold>("nvmlDeviceGetTemperatureThreshold gpu max", nvml::kThresholdGpuMax), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "target"}, call<&F::nvmlDeviceGetTemperatureThreshold>("nvmlDeviceGetTemperatureThreshold acoustic", nvml::kThresholdAcousticCurrent), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "memory", "limit", "max"}, call<&F::nvmlDeviceGetTemperatureThreshold>("nvmlDeviceGetTemperatureThreshold memory max", nvml::kThresholdMemoryMax), 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_margin, {"sensor", "core"}, part<&F::nvmlDeviceGetMarginTemperature, &nvml::MarginTemperature::celsius>("nvmlDeviceGetMarginTemperature"), 1, Tier::fast, {}, kCelsius},
    {&catalog::temperature_margin, {"sensor", "core"}, margin("nvmlDeviceGetTemperatureThreshold - temperature"), 1, Tier::fast, {}, kCelsius},
});

struct Clock {
  std::string_view name;
  unsigned type;
};
inline constexpr Clock kClocks[] = {{"graphics", nvml::kClockGraphics}, {"sm", nvml::kClockSm}, {"memory", nvml::kClockMemory}, {"video", nvml::kClockVideo}};
template <auto Function>
constexpr NvidiaSource clock_source(std::string_view name, unsigned type) {
  return type == nvml::kClockMemory ? on_card<readers::bind_call<Function>>(name, type) : call<Function>(name, type);
}
inline constexpr auto kClockRows = each(kClocks, [](const Clock& clock) {
  return Row{&catalog::clock, {"clock", clock.name}, clock_source<&F::nvmlDeviceGetClockInfo>("nvmlDeviceGetClockInfo", clock.type), kMega, Tier::fast, {}, kHertz};
});
inline constexpr auto kClockMaxRows = each(kClocks, [](const Clock& clock) {
  return Row{&catalog::clock_max, {"clock", clock.name}, clock_source<&F::nvmlDeviceGetMaxClockInfo>("nvmlDeviceGetMaxClockInfo", clock.type), kMega, Tier::slow, {}, kHertz};
});
inline constexpr auto kStateRows = std::to_array<Row>({
    {&catalog::performance_state, {}, call<&F::nvmlDeviceGetPerformanceState>("nvmlDeviceGetPerformanceState"), 1, Tier::normal, {}, kPerformanceStates},
});

inline constexpr std::string_view kFans[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
inline constexpr auto kFanRows = each_place(kFans, [](std::size_t place, std::string_view fan) {
  return Row{&catalog::fan_speed, {"fan", fan}, nvidia::fan(place), kPercent, Tier::normal, {}, kFan};
});
inline constexpr auto kFanRpmRows = each_place(kFans, [](std::size_t place, std::string_view fan) {
  return Row{&catalog::fan_rpm, {"fan", fan}, fan_rpm(place), 1, Tier::normal, {}, kPositive};
});

constexpr auto peak_rows(const MetricDescriptor& family, bool from_table) {
  return each_place(kDtypes, [&](std::size_t place, std::string_view dtype) {
    return Row{&family, {"dtype", dtype, "source", from_table ? "table" : "formula"}, peak(static_cast<unsigned>(place), from_table), 1, Tier::once};
  });
}
inline constexpr auto kPeakTableRows = peak_rows(catalog::peak_flops, true);
inline constexpr auto kPeakFormulaRows = peak_rows(catalog::peak_flops, false);
inline constexpr auto kPeakBandwidthRows = std::to_array<Row>({
    {&catalog::peak_memory_bandwidth, {}, peak_bandwidth(), 1, Tier::once},
});
// clang-format on

}  // namespace gpumeter::nvidia
