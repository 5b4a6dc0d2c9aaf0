#include <algorithm>
#include <iterator>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/collector.hpp"
#include "collectors/nvidia/readers.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::nvidia {
namespace {

// Traits that rows of several tables have.

// No card exceeds these ranges, so a reading outside must be wrong.
constexpr Traits kCelsius{.min = -50, .max = 250};
constexpr Traits kMemoryCelsius{.min = -50, .max = 250, .zero_is_unknown = true};
constexpr Traits kWatts{.min = 0, .max = 5000};
constexpr Traits kHertz{.min = 0, .max = 20e9};
constexpr Traits kSize{.min = 1};
constexpr Traits kPerformanceStates{.min = 0, .max = 15};  // P0 to P15
constexpr Traits kFan{.min = 0, .max = 2};  // "may exceed 100 %" (nvml.h at nvmlDeviceGetFanSpeed)
constexpr Traits kLinkGeneration{.min = 1, .max = 8};
constexpr Traits kLinkLanes{.min = 1, .max = 32};

// Counters that gpumeter adds up: from the driver's buffer of samples, from rates.
constexpr Traits kSampled{.counted_by = "samples"};
constexpr Traits kIntegrated{.min = 0, .counted_by = "integrated"};

// Rows of the GPU's activity. Counters precede the gauges whose integral would be the same series.

// clang-format off
// Field ids: nvml.h, NVML_FI_DEV_*; metric ids: NVML_GPM_METRIC_*. The driver has no utilisation of a divided
// GPU.
constexpr auto kUtilizationRows = std::to_array<Row>({
    {&catalog::busy_seconds, {}, {sampled, "nvmlDeviceGetSamples gpu", nvml::kGpuSamples}, kPercent, Tier::fast, {}, kSampled},
    {&catalog::utilization_max, {"window", "1m"}, {sampled_max, "nvmlDeviceGetSamples gpu", nvml::kGpuSamples}, kPercent, Tier::fast, {}, kRatio},
    {&catalog::utilization_min, {"window", "1m"}, {sampled_min, "nvmlDeviceGetSamples gpu", nvml::kGpuSamples}, kPercent, Tier::fast, {}, kRatio},
    {&catalog::utilization, {}, {part<&F::nvmlDeviceGetUtilizationRates, &nvml::Utilization::gpu>, "nvmlDeviceGetUtilizationRates gpu"}, kPercent, Tier::fast, averaged(catalog::busy_seconds).with(kUtilizationExtremes), kRatio},
    {&catalog::memory_controller_busy_seconds, {}, {on_card<sampled>, "nvmlDeviceGetSamples memory", nvml::kMemorySamples}, kPercent, Tier::fast, {}, kSampled},
    {&catalog::memory_controller_utilization, {}, {on_card<part<&F::nvmlDeviceGetUtilizationRates, &nvml::Utilization::memory>>, "nvmlDeviceGetUtilizationRates memory"}, kPercent, Tier::fast, averaged(catalog::memory_controller_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "encode"}, {call<&F::nvmlDeviceGetEncoderUtilization>, "nvmlDeviceGetEncoderUtilization"}, kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, {call<&F::nvmlDeviceGetDecoderUtilization>, "nvmlDeviceGetDecoderUtilization"}, kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, {call<&F::nvmlDeviceGetJpgUtilization>, "nvmlDeviceGetJpgUtilization"}, kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "optical_flow"}, {call<&F::nvmlDeviceGetOfaUtilization>, "nvmlDeviceGetOfaUtilization"}, kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "encode"}, gpm_mean("GPM NVENC", 166, 4), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, gpm_mean("GPM NVDEC", 30, 8), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, gpm_mean("GPM NVJPG", 40, 8), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "optical_flow"}, gpm_mean("GPM NVOFA", 50, 2), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "graphics"}, {gpm, "GPM graphics", 1}, kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
});

/// The families that a GPU and a MIG instance have in common: one set for each.
struct GpmFamilies {
  const MetricDescriptor *compute, *compute_seconds, *occupancy, *occupancy_seconds, *pipe, *pipe_seconds, *tensor,
      *tensor_seconds, *bandwidth, *bandwidth_seconds;
};
constexpr GpmFamilies kGpuFamilies = {
    &catalog::compute_active, &catalog::compute_active_seconds, &catalog::compute_occupancy, &catalog::compute_occupancy_seconds,
    &catalog::pipe_active, &catalog::pipe_active_seconds, &catalog::tensor_active, &catalog::tensor_active_seconds,
    &catalog::memory_bandwidth_utilization, &catalog::memory_bandwidth_utilization_seconds};
constexpr GpmFamilies kPartitionFamilies = {
    &catalog::partition_compute_active, &catalog::partition_compute_active_seconds, &catalog::partition_compute_occupancy,
    &catalog::partition_compute_occupancy_seconds, &catalog::partition_pipe_active, &catalog::partition_pipe_active_seconds,
    &catalog::partition_tensor_active, &catalog::partition_tensor_active_seconds,
    &catalog::partition_memory_bandwidth_utilization, &catalog::partition_memory_bandwidth_utilization_seconds};

// The driver counts cycles from 595 on; before it the means between two passes are integrated. The kinds of
// tensor work are NVML's classes of instructions, not data types: HMMA is fp16, bf16, tf32 and on some chips
// fp8, IMMA is integer. fp64 has two classes, DFMA and DMMA. They are not added up: no document states that
// they are disjoint.
constexpr auto gpm_rows(const GpmFamilies& of) {
  return std::to_array<Row>({
    {of.compute_seconds, {}, {gpm_cycles, "GPM SM cycles active / elapsed", 249}, 1, Tier::fast},
    {of.compute, {}, {gpm, "GPM SM", 2}, kPercent, Tier::fast, averaged(*of.compute_seconds), kRatio},
    {of.occupancy, {}, {gpm, "GPM SM occupancy", 3}, kPercent, Tier::fast, averaged(*of.occupancy_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "tensor"}, {gpm_cycles, "GPM MMA cycles / elapsed", 250}, 1, Tier::fast},
    {of.pipe, {"pipe", "tensor"}, {gpm, "GPM any tensor", 5}, kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "fp64"}, {gpm_cycles, "GPM FP64 cycles / elapsed", 258}, 1, Tier::fast},
    {of.pipe, {"pipe", "fp64"}, {gpm, "GPM FP64", 11}, kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "fp32"}, {gpm_cycles, "GPM FP32 cycles / elapsed", 259}, 1, Tier::fast},
    {of.pipe, {"pipe", "fp32"}, {gpm, "GPM FP32", 12}, kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "fp16"}, {gpm_cycles, "GPM FP16 cycles / elapsed", 260}, 1, Tier::fast},
    {of.pipe, {"pipe", "fp16"}, {gpm, "GPM FP16", 13}, kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "int"}, {gpm_cycles, "GPM integer cycles / elapsed", 257}, 1, Tier::fast},
    {of.pipe, {"pipe", "int"}, {gpm, "GPM integer", 4}, kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.tensor_seconds, {"kind", "fp64"}, {gpm_cycles, "GPM DFMA cycles / elapsed", 254}, 1, Tier::fast},
    {of.tensor, {"kind", "fp64"}, {gpm, "GPM DFMA tensor", 6}, kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.tensor, {"kind", "fp64"}, {gpm, "GPM DMMA tensor", 8}, kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.tensor_seconds, {"kind", "fp16"}, {gpm_cycles, "GPM HMMA cycles / elapsed", 252}, 1, Tier::fast},
    {of.tensor, {"kind", "fp16"}, {gpm, "GPM HMMA tensor", 7}, kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.tensor_seconds, {"kind", "int"}, {gpm_cycles, "GPM IMMA cycles / elapsed", 253}, 1, Tier::fast},
    {of.tensor, {"kind", "int"}, {gpm, "GPM IMMA tensor", 9}, kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.bandwidth, {}, {gpm, "GPM DRAM bandwidth", 10}, kPercent, Tier::fast, averaged(*of.bandwidth_seconds), kRatio},
  });
}
constexpr auto kGpmRows = gpm_rows(kGpuFamilies);

// Throttling. The seconds come from the hardware's counters if it has them; two counters of one cause are
// added.
struct Throttle {
  std::string_view cause, reason;
  std::uint64_t mask; // bits of nvml::EventReason
  unsigned field = 0, second = 0;  // NVML_FI_DEV_PERF_POLICY_*, ..._CLOCKS_EVENT_REASON_*
};
constexpr Throttle kCauses[] = {
    {"power", "", nvml::kReasonSwPowerCap | nvml::kReasonHwPowerBrake, 74, 271},
    {"power", "", nvml::kReasonSwPowerCap | nvml::kReasonHwPowerBrake, 74},
    {"thermal", "", nvml::kReasonSwThermal | nvml::kReasonHwThermal, 269, 270},
    {"thermal", "", nvml::kReasonSwThermal | nvml::kReasonHwThermal, 75},
    {"sync", "", nvml::kReasonSyncBoost, 76},
    {"reliability", "", nvml::kReasonBoardLimit | nvml::kReasonReliability, 77, 79},
    {"hardware", "", nvml::kReasonHwSlowdown},
    {"software", "", nvml::kReasonApplicationsClocks | nvml::kReasonDisplayClocks},
};
constexpr Throttle kReasons[] = {
    {"power", "sw_power_cap", nvml::kReasonSwPowerCap, 74},
    {"power", "hw_power_brake", nvml::kReasonHwPowerBrake, 271},
    {"thermal", "sw_thermal", nvml::kReasonSwThermal, 269},
    {"thermal", "hw_thermal", nvml::kReasonHwThermal, 270},
    {"sync", "sync_boost", nvml::kReasonSyncBoost, 76},
    {"reliability", "board_limit", nvml::kReasonBoardLimit, 77},
    {"reliability", "reliability", nvml::kReasonReliability, 79},
    {"hardware", "hw_slowdown", nvml::kReasonHwSlowdown},
    {"software", "applications_clocks", nvml::kReasonApplicationsClocks},
    {"software", "display_clocks", nvml::kReasonDisplayClocks},
};
constexpr auto kCauseTimes = each(kCauses, [](const Throttle& row) {
  return Row{&catalog::throttle_seconds, {"cause", row.cause}, throttle_time("field values: throttle counters", row.field, row.second), 1, Tier::fast};
});
constexpr auto kCauseRows = each(kCauses, [](const Throttle& row) {
  return Row{&catalog::throttled, {"cause", row.cause}, {reasons, "nvmlDeviceGetCurrentClocksEventReasons", row.mask}, 1, Tier::fast, state(catalog::throttle_seconds)};
});
constexpr auto kReasonTimes = each(kReasons, [](const Throttle& row) {
  return Row{&catalog::throttle_reason_seconds, {"cause", row.cause, "reason", row.reason}, throttle_time("field values: throttle counters", row.field, row.second), 1, Tier::fast};
});
constexpr auto kReasonRows = each(kReasons, [](const Throttle& row) {
  return Row{&catalog::throttle_reason_active, {"cause", row.cause, "reason", row.reason}, {reasons, "nvmlDeviceGetCurrentClocksEventReasons", row.mask}, 1, Tier::fast, state(catalog::throttle_reason_seconds)};
});
// clang-format on

// Rows of memory, power, temperatures, clocks, fans and peaks.

// clang-format off
// The families that a GPU and a MIG instance have in common: one set for each.
struct MemoryFamilies {
  const MetricDescriptor *size, *used, *free, *reserved;
};
constexpr auto memory_rows(const MemoryFamilies& of) {
  return std::to_array<Row>({
    {of.size, {"memory", "vram"}, {part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::total>, "nvmlDeviceGetMemoryInfo_v2 total"}, 1, Tier::normal, {}, kSize},
    {of.used, {"memory", "vram"}, {part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::used>, "nvmlDeviceGetMemoryInfo_v2 used"}, 1, Tier::normal, {}, kPositive},
    {of.free, {"memory", "vram"}, {part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::free>, "nvmlDeviceGetMemoryInfo_v2 free"}, 1, Tier::normal, {}, kPositive},
    {of.reserved, {"memory", "vram"}, {part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::reserved>, "nvmlDeviceGetMemoryInfo_v2 reserved"}, 1, Tier::normal, {}, kPositive},
    {of.size, {"memory", "vram"}, {part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::total>, "nvmlDeviceGetMemoryInfo total"}, 1, Tier::normal, {}, kSize},
    {of.used, {"memory", "vram"}, {part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::used>, "nvmlDeviceGetMemoryInfo used"}, 1, Tier::normal, {}, kPositive},
    {of.free, {"memory", "vram"}, {part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::free>, "nvmlDeviceGetMemoryInfo free"}, 1, Tier::normal, {}, kPositive},
    {of.size, {"memory", "bar1"}, {part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::total>, "nvmlDeviceGetBAR1MemoryInfo total"}, 1, Tier::normal, {}, kSize},
    {of.used, {"memory", "bar1"}, {part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::used>, "nvmlDeviceGetBAR1MemoryInfo used"}, 1, Tier::normal, {}, kPositive},
    {of.free, {"memory", "bar1"}, {part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::free>, "nvmlDeviceGetBAR1MemoryInfo free"}, 1, Tier::normal, {}, kPositive},
  });
}
constexpr auto kMemoryRows = memory_rows({&catalog::memory_size, &catalog::memory_used, &catalog::memory_free, &catalog::memory_reserved});

// Never next to vram: these rows bind only if NVML knows no memory of the GPU. The host's file does not prove
// that the GPU answers.
constexpr Traits kHostBytes{.min = 0, .wakes = false};
constexpr auto kUnifiedMemoryRows = std::to_array<Row>({
    {&catalog::memory_size, {"memory", "unified"}, {unified_memory, "/proc/meminfo MemTotal", MemoryPart::size}, 1, Tier::normal, {}, kHostBytes},
    {&catalog::memory_used, {"memory", "unified"}, {unified_memory, "/proc/meminfo MemTotal - MemAvailable", MemoryPart::used}, 1, Tier::normal, {}, kHostBytes},
    {&catalog::memory_free, {"memory", "unified"}, {unified_memory, "/proc/meminfo MemAvailable", MemoryPart::free}, 1, Tier::normal, {}, kHostBytes},
});

// Field 185 is a mean over a second. On the same chips nvmlDeviceGetPowerUsage is a mean too; on chips
// without the field it is an instantaneous value (GA100 and older; nvml.h).
constexpr auto kPowerRows = std::to_array<Row>({
    {&catalog::energy_joules, {}, field("NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 83, Tier::fast), kMilli, Tier::fast, {}, kPositive},
    {&catalog::energy_joules, {}, {call<&F::nvmlDeviceGetTotalEnergyConsumption>, "nvmlDeviceGetTotalEnergyConsumption"}, kMilli, Tier::fast, {}, kPositive},
    {&catalog::energy_joules, {}, {sampled, "nvmlDeviceGetSamples power", nvml::kPowerSamples}, kMilli, Tier::fast, {}, kSampled},
    {&catalog::power_max, {"window", "1m"}, {sampled_max, "nvmlDeviceGetSamples power", nvml::kPowerSamples}, kMilli, Tier::fast, {}, kWatts},
    {&catalog::power_min, {"window", "1m"}, {sampled_min, "nvmlDeviceGetSamples power", nvml::kPowerSamples}, kMilli, Tier::fast, {}, kWatts},
    {&catalog::power, {}, field("NVML_FI_DEV_POWER_AVERAGE", 185, Tier::fast), kMilli, Tier::fast, averaged(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power, {}, {call<&F::nvmlDeviceGetPowerUsage>, "nvmlDeviceGetPowerUsage"}, kMilli, Tier::fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power_instant, {}, field("NVML_FI_DEV_POWER_INSTANT", 186, Tier::fast), kMilli, Tier::fast, {}, kWatts},
    {&catalog::rail_energy_joules, {"rail", "module"}, field("NVML_FI_DEV_ENERGY module", 191, Tier::fast, 1), kMilli, Tier::fast, {}, kPositive},
    {&catalog::power_rail, {"rail", "module"}, field("NVML_FI_DEV_POWER_AVERAGE module", 185, Tier::fast, 1), kMilli, Tier::fast, averaged(catalog::rail_energy_joules), kWatts},
    {&catalog::power_rail, {"rail", "memory"}, field("NVML_FI_DEV_POWER_AVERAGE memory", 185, Tier::fast, 2), kMilli, Tier::fast, averaged(catalog::rail_energy_joules), kWatts},
    {&catalog::power_limit, {"limit", "enforced"}, {call<&F::nvmlDeviceGetEnforcedPowerLimit>, "nvmlDeviceGetEnforcedPowerLimit"}, kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "enforced"}, field("NVML_FI_DEV_POWER_CURRENT_LIMIT", 190, Tier::slow), kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "default"}, {call<&F::nvmlDeviceGetPowerManagementDefaultLimit>, "nvmlDeviceGetPowerManagementDefaultLimit"}, kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "min"}, {call<&F::nvmlDeviceGetPowerManagementLimitConstraints>, "nvmlDeviceGetPowerManagementLimitConstraints", 0}, kMilli, Tier::slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "max"}, {call<&F::nvmlDeviceGetPowerManagementLimitConstraints>, "nvmlDeviceGetPowerManagementLimitConstraints", 1}, kMilli, Tier::slow, {}, kWatts},
});

constexpr auto kTemperatureRows = std::to_array<Row>({
    {&catalog::temperature, {"sensor", "core"}, {part<&F::nvmlDeviceGetTemperatureV, &nvml::Temperature::celsius>, "nvmlDeviceGetTemperatureV"}, 1, Tier::fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, {call<&F::nvmlDeviceGetTemperature>, "nvmlDeviceGetTemperature"}, 1, Tier::fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "memory"}, field("NVML_FI_DEV_MEMORY_TEMP", 82, Tier::fast), 1, Tier::fast, {}, kMemoryCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "slowdown"}, {tlimit, "NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT", 194}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "shutdown"}, {tlimit, "NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT", 193}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "max"}, {tlimit, "NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT", 196}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "slowdown"}, {call<&F::nvmlDeviceGetTemperatureThreshold>, "nvmlDeviceGetTemperatureThreshold slowdown", nvml::kThresholdSlowdown}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "shutdown"}, {call<&F::nvmlDeviceGetTemperatureThreshold>, "nvmlDeviceGetTemperatureThreshold shutdown", nvml::kThresholdShutdown}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "max"}, {call<&F::nvmlDeviceGetTemperatureThreshold>, "nvmlDeviceGetTemperatureThreshold gpu max", nvml::kThresholdGpuMax}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "target"}, {call<&F::nvmlDeviceGetTemperatureThreshold>, "nvmlDeviceGetTemperatureThreshold acoustic", nvml::kThresholdAcousticCurrent}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "memory", "limit", "max"}, {call<&F::nvmlDeviceGetTemperatureThreshold>, "nvmlDeviceGetTemperatureThreshold memory max", nvml::kThresholdMemoryMax}, 1, Tier::slow, {}, kCelsius},
    {&catalog::temperature_margin, {"sensor", "core"}, {part<&F::nvmlDeviceGetMarginTemperature, &nvml::MarginTemperature::celsius>, "nvmlDeviceGetMarginTemperature"}, 1, Tier::fast, {}, kCelsius},
    {&catalog::temperature_margin, {"sensor", "core"}, {margin, "nvmlDeviceGetTemperatureThreshold - temperature"}, 1, Tier::fast, {}, kCelsius},
});

struct Clock {
  std::string_view name;
  unsigned type;
};
constexpr Clock kClocks[] = {{"graphics", nvml::kClockGraphics}, {"sm", nvml::kClockSm}, {"memory", nvml::kClockMemory}, {"video", nvml::kClockVideo}};
template <auto Function>
constexpr NvidiaSource clock_source(std::string_view name, unsigned type) {
  return {type == nvml::kClockMemory ? on_card<call<Function>> : call<Function>, name, type};
}
constexpr auto kClockRows = each(kClocks, [](const Clock& clock) {
  return Row{&catalog::clock, {"clock", clock.name}, clock_source<&F::nvmlDeviceGetClockInfo>("nvmlDeviceGetClockInfo", clock.type), kMega, Tier::fast, {}, kHertz};
});
constexpr auto kClockMaxRows = each(kClocks, [](const Clock& clock) {
  return Row{&catalog::clock_max, {"clock", clock.name}, clock_source<&F::nvmlDeviceGetMaxClockInfo>("nvmlDeviceGetMaxClockInfo", clock.type), kMega, Tier::slow, {}, kHertz};
});
constexpr auto kStateRows = std::to_array<Row>({
    {&catalog::performance_state, {}, {call<&F::nvmlDeviceGetPerformanceState>, "nvmlDeviceGetPerformanceState"}, 1, Tier::normal, {}, kPerformanceStates},
});

constexpr std::string_view kFans[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
constexpr auto kFanRows = each_place(kFans, [](std::size_t place, std::string_view label) {
  return Row{&catalog::fan_speed, {"fan", label}, {on_card<fan>, "nvmlDeviceGetFanSpeed_v2", place}, kPercent, Tier::normal, {}, kFan};
});
constexpr auto kFanRpmRows = each_place(kFans, [](std::size_t place, std::string_view label) {
  return Row{&catalog::fan_rpm, {"fan", label}, {on_card<fan_rpm>, "nvmlDeviceGetFanSpeedRPM", place}, 1, Tier::normal, {}, kPositive};
});

constexpr auto peak_rows(const MetricDescriptor& family, bool from_table) {
  return each_place(kDtypes, [&](std::size_t place, std::string_view dtype) {
    return Row{&family, {"dtype", dtype, "source", from_table ? "table" : "formula"}, {from_table ? peak_in_table : peak_by_formula, from_table ? "peaks: table" : "peaks: formula", place}, 1, Tier::once};
  });
}
constexpr auto kPeakTableRows = peak_rows(catalog::peak_flops, true);
constexpr auto kPeakFormulaRows = peak_rows(catalog::peak_flops, false);
constexpr auto kPeakBandwidthRows = std::to_array<Row>({
    {&catalog::peak_memory_bandwidth, {}, {peak_bandwidth, "peaks: memory bandwidth"}, 1, Tier::once},
});
// clang-format on

// Rows of modes, memory errors, PCIe, events and the driver's recovery requests.

// clang-format off
// Values of nvmlEnableState_t and nvmlComputeMode_t.
template <auto Function>
constexpr auto mode_rows(std::string_view mode, std::string_view call_name, unsigned which = 0) {
  return std::to_array<Row>({
    {&catalog::mode, {"mode", mode, "state", "enabled"}, is<Function>(call_name, 1, which), 1, Tier::slow},
    {&catalog::mode, {"mode", mode, "state", "disabled"}, is<Function>(call_name, 0, which), 1, Tier::slow},
  });
}
constexpr auto kPersistenceRows = mode_rows<&F::nvmlDeviceGetPersistenceMode>("persistence", "nvmlDeviceGetPersistenceMode");
constexpr auto kDisplayRows = mode_rows<&F::nvmlDeviceGetDisplayActive>("display", "nvmlDeviceGetDisplayActive");
constexpr auto kEccModeRows = mode_rows<&F::nvmlDeviceGetEccMode>("ecc", "nvmlDeviceGetEccMode");
constexpr auto kEccPendingRows = mode_rows<&F::nvmlDeviceGetEccMode>("ecc_pending", "nvmlDeviceGetEccMode pending", 1);
constexpr auto kMigModeRows = mode_rows<&F::nvmlDeviceGetMigMode>("mig", "nvmlDeviceGetMigMode");
constexpr auto kMigPendingRows = mode_rows<&F::nvmlDeviceGetMigMode>("mig_pending", "nvmlDeviceGetMigMode pending", 1);
constexpr auto kOtherModeRows = std::to_array<Row>({
    {&catalog::mode, {"mode", "compute", "state", "default"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 0), 1, Tier::slow},
    {&catalog::mode, {"mode", "compute", "state", "exclusive_thread"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 1), 1, Tier::slow},
    {&catalog::mode, {"mode", "compute", "state", "prohibited"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 2), 1, Tier::slow},
    {&catalog::mode, {"mode", "compute", "state", "exclusive_process"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 3), 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential", "state", "enabled"}, {confidential, "nvmlSystemGetConfComputeSettings", true}, 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential", "state", "disabled"}, {confidential, "nvmlSystemGetConfComputeSettings", false}, 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential_multi_gpu", "state", "none"}, {multi_gpu, "nvmlSystemGetConfComputeSettings multiGpuMode", nvml::kMultiGpuNone}, 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential_multi_gpu", "state", "protected_pcie"}, {multi_gpu, "nvmlSystemGetConfComputeSettings multiGpuMode", nvml::kMultiGpuProtectedPcie}, 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential_multi_gpu", "state", "nvle"}, {multi_gpu, "nvmlSystemGetConfComputeSettings multiGpuMode", nvml::kMultiGpuNvle}, 1, Tier::slow},
});

// nvmlMemoryLocation_t. From Ampere on the driver counts SRAM as a whole; earlier ones count each part.
struct Location {
  std::string_view name;
  unsigned id;
};
constexpr Location kWholes[] = {{"dram", 2}, {"sram", 7}};
constexpr Location kParts[] = {{"l1", 0}, {"l2", 1}, {"register_file", 3}, {"texture", 4}, {"shared", 5}, {"cbu", 6}};
constexpr auto ecc_rows(const MetricDescriptor& family, unsigned counter, std::string_view severity, unsigned type) {
  return each(kWholes, [&](const Location& location) {
    return Row{&family, {"severity", severity, "location", location.name}, ecc("nvmlDeviceGetMemoryErrorCounter", type, counter, location.id), 1, Tier::slow};
  });
}
constexpr auto ecc_part_rows(const MetricDescriptor& family, unsigned counter, std::string_view severity, unsigned type) {
  return each(kParts, [&](const Location& location) {
    return Row{&family, {"severity", severity, "location", location.name}, ecc_part("nvmlDeviceGetMemoryErrorCounter", type, counter, location.id), 1, Tier::slow};
  });
}
constexpr auto kEccRows = joined(
    ecc_rows(catalog::memory_errors, nvml::kVolatile, "corrected", nvml::kCorrected),
    ecc_rows(catalog::memory_errors, nvml::kVolatile, "uncorrected", nvml::kUncorrected),
    ecc_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "corrected", nvml::kCorrected),
    ecc_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "uncorrected", nvml::kUncorrected),
    ecc_part_rows(catalog::memory_errors, nvml::kVolatile, "corrected", nvml::kCorrected),
    ecc_part_rows(catalog::memory_errors, nvml::kVolatile, "uncorrected", nvml::kUncorrected),
    ecc_part_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "corrected", nvml::kCorrected),
    ecc_part_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "uncorrected", nvml::kUncorrected));

constexpr Traits kFlag{.min = 0, .max = 1};
constexpr auto kMemoryHealthRows = std::to_array<Row>({
    {&catalog::retired_pages, {"cause", "single_bit"}, field("NVML_FI_DEV_RETIRED_SBE", 29, Tier::slow), 1, Tier::slow},
    {&catalog::retired_pages, {"cause", "double_bit"}, field("NVML_FI_DEV_RETIRED_DBE", 30, Tier::slow), 1, Tier::slow},
    {&catalog::retired_pages_pending, {}, field("NVML_FI_DEV_RETIRED_PENDING", 31, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows, {"cause", "corrected"}, field("NVML_FI_DEV_REMAPPED_COR", 142, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows, {"cause", "uncorrected"}, field("NVML_FI_DEV_REMAPPED_UNC", 143, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows_inactive, {"cause", "corrected"}, field("NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE", 301, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows_inactive, {"cause", "uncorrected"}, field("NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE", 302, Tier::slow), 1, Tier::slow},
    {&catalog::memory_unrepairable, {}, {part<&F::nvmlDeviceGetUnrepairableMemoryFlag_v1, &nvml::UnrepairableMemory::is_unrepairable>, "nvmlDeviceGetUnrepairableMemoryFlag_v1"}, 1, Tier::slow, {}, kFlag},
    {&catalog::sram_threshold_exceeded, {}, {part<&F::nvmlDeviceGetSramEccErrorStatus, &nvml::SramErrors::is_above_threshold>, "nvmlDeviceGetSramEccErrorStatus threshold"}, 1, Tier::slow, {}, kFlag},
    {&catalog::sram_lifetime_errors, {"unit", "l2"}, {part<&F::nvmlDeviceGetSramEccErrorStatus, &nvml::SramErrors::l2>, "nvmlDeviceGetSramEccErrorStatus L2"}, 1, Tier::slow},
    {&catalog::sram_lifetime_errors, {"unit", "sm"}, {part<&F::nvmlDeviceGetSramEccErrorStatus, &nvml::SramErrors::sm>, "nvmlDeviceGetSramEccErrorStatus SM"}, 1, Tier::slow},
    {&catalog::sram_lifetime_errors, {"unit", "pcie"}, {part<&F::nvmlDeviceGetSramEccErrorStatus, &nvml::SramErrors::pcie>, "nvmlDeviceGetSramEccErrorStatus PCIe"}, 1, Tier::slow},
    {&catalog::sram_lifetime_errors, {"unit", "microcontroller"}, {part<&F::nvmlDeviceGetSramEccErrorStatus, &nvml::SramErrors::microcontroller>, "nvmlDeviceGetSramEccErrorStatus microcontroller"}, 1, Tier::slow},
    {&catalog::sram_lifetime_errors, {"unit", "other"}, {part<&F::nvmlDeviceGetSramEccErrorStatus, &nvml::SramErrors::other>, "nvmlDeviceGetSramEccErrorStatus other"}, 1, Tier::slow},
    {&catalog::repair_pending, {"part", "channel"}, {part<&F::nvmlDeviceGetRepairStatus, &nvml::RepairStatus::channel_pending>, "nvmlDeviceGetRepairStatus channel"}, 1, Tier::slow, {}, kFlag},
    {&catalog::repair_pending, {"part", "tpc"}, {part<&F::nvmlDeviceGetRepairStatus, &nvml::RepairStatus::tpc_pending>, "nvmlDeviceGetRepairStatus TPC"}, 1, Tier::slow, {}, kFlag},
    {&catalog::remapped_banks, {"state", "active"}, {part<&F::nvmlDeviceGetBankRemapperStatus_v1, &nvml::BankRemapperStatus::active>, "nvmlDeviceGetBankRemapperStatus_v1"}, 1, Tier::slow},
    {&catalog::remapped_banks, {"state", "inactive"}, {part<&F::nvmlDeviceGetBankRemapperStatus_v1, &nvml::BankRemapperStatus::inactive>, "nvmlDeviceGetBankRemapperStatus_v1"}, 1, Tier::slow},
    {&catalog::remapped_banks, {"state", "pending"}, {part<&F::nvmlDeviceGetBankRemapperStatus_v1, &nvml::BankRemapperStatus::is_pending>, "nvmlDeviceGetBankRemapperStatus_v1"}, 1, Tier::slow},
    {&catalog::bank_remap_groups, {"availability", "max"}, {part<&F::nvmlDeviceGetBankRemapperStatus_v1, &nvml::BankRemapperStatus::max>, "nvmlDeviceGetBankRemapperStatus_v1"}, 1, Tier::slow},
    {&catalog::bank_remap_groups, {"availability", "none"}, {part<&F::nvmlDeviceGetBankRemapperStatus_v1, &nvml::BankRemapperStatus::none>, "nvmlDeviceGetBankRemapperStatus_v1"}, 1, Tier::slow},
    {&catalog::row_remap_pending, {}, field("NVML_FI_DEV_REMAPPED_PENDING", 144, Tier::slow), 1, Tier::slow},
    {&catalog::row_remap_failed, {}, field("NVML_FI_DEV_REMAPPED_FAILURE", 145, Tier::slow), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "max"}, {part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::max>, "nvmlDeviceGetRowRemapperHistogram"}, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "high"}, {part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::high>, "nvmlDeviceGetRowRemapperHistogram"}, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "partial"}, {part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::partial>, "nvmlDeviceGetRowRemapperHistogram"}, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "low"}, {part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::low>, "nvmlDeviceGetRowRemapperHistogram"}, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "none"}, {part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::none>, "nvmlDeviceGetRowRemapperHistogram"}, 1, Tier::slow},
});

// Bytes come from GPM's counters (driver 595 and later), otherwise from its rates (MiB/s), otherwise from the
// fields after they have proved to be wide. nvmlDeviceGetPcieThroughput is never called: it blocks for 20 ms.
constexpr Traits kWideBytes{.min = 0, .zero_is_unknown = true};
constexpr auto kPcieRows = std::to_array<Row>({
    {&catalog::pcie_transmitted_bytes, {}, {gpm, "GPM PCIe TX bytes", 255}, 1, Tier::fast, {}, kPositive},
    {&catalog::pcie_received_bytes, {}, {gpm, "GPM PCIe RX bytes", 256}, 1, Tier::fast, {}, kPositive},
    {&catalog::pcie_transmitted_bytes, {}, {gpm_total, "GPM PCIe TX MiB/s", 20}, kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::pcie_received_bytes, {}, {gpm_total, "GPM PCIe RX MiB/s", 21}, kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::pcie_transmitted_bytes, {}, wide_field("NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 197, Tier::fast), 1, Tier::fast, {}, kWideBytes},
    {&catalog::pcie_received_bytes, {}, wide_field("NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 198, Tier::fast), 1, Tier::fast, {}, kWideBytes},
    {&catalog::pcie_link_generation, {}, {on_card<call<&F::nvmlDeviceGetCurrPcieLinkGeneration>>, "nvmlDeviceGetCurrPcieLinkGeneration"}, 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_lanes, {}, {on_card<call<&F::nvmlDeviceGetCurrPcieLinkWidth>>, "nvmlDeviceGetCurrPcieLinkWidth"}, 1, Tier::slow, {}, kLinkLanes},
    {&catalog::pcie_link_max_generation, {}, {on_card<call<&F::nvmlDeviceGetMaxPcieLinkGeneration>>, "nvmlDeviceGetMaxPcieLinkGeneration"}, 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_max_lanes, {}, {on_card<call<&F::nvmlDeviceGetMaxPcieLinkWidth>>, "nvmlDeviceGetMaxPcieLinkWidth"}, 1, Tier::slow, {}, kLinkLanes},
    {&catalog::pcie_replays, {}, field("NVML_FI_DEV_PCIE_REPLAY_COUNTER", 94, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_replays, {}, {call<&F::nvmlDeviceGetPcieReplayCounter>, "nvmlDeviceGetPcieReplayCounter"}, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "receiver"}, field("NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR", 175, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_tlp"}, field("NVML_FI_DEV_PCIE_COUNT_BAD_TLP", 176, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_dllp"}, field("NVML_FI_DEV_PCIE_COUNT_BAD_DLLP", 178, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "nonfatal", "kind", "any"}, field("NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR", 179, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "fatal", "kind", "any"}, field("NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR", 180, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "l0_to_recovery"}, field("NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER", 169, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "nak_received"}, field("NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED", 174, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "nak_sent"}, field("NVML_FI_DEV_PCIE_COUNT_NAKS_SENT", 177, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "unsupported_request"}, field("NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ", 181, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "lcrc_error"}, field("NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR", 182, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "lane_error"}, field("NVML_FI_DEV_PCIE_COUNT_LANE_ERROR", 183, Tier::slow), 1, Tier::slow},
});

// NVML_GPU_RECOVERY_ACTION_*, in their order.
constexpr std::string_view kRecoveryActions[] = {"none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex", "bus_reset", "system_reboot"};
constexpr auto kRecoveryRows = each_place(kRecoveryActions, [](std::size_t place, std::string_view action) {
  return Row{&catalog::recovery_action, {"action", action}, field_is("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", 230, Tier::slow, static_cast<unsigned>(place)), 1, Tier::slow};
});
// Newer drivers have further actions.
constexpr auto kOtherRecoveryRows = std::to_array<Row>({
    {&catalog::recovery_action, {"action", "other"}, field_beyond("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", 230, Tier::slow, std::size(kRecoveryActions)), 1, Tier::slow},
});
constexpr auto kLicenseRows = std::to_array<Row>({
    {&catalog::license_state, {"state", "licensed"}, {licensed, "nvmlDeviceGetGridLicensableFeatures_v4", true}, 1, Tier::slow},
    {&catalog::license_state, {"state", "unlicensed"}, {licensed, "nvmlDeviceGetGridLicensableFeatures_v4", false}, 1, Tier::slow},
});

// The event thread counts these, so reading them requires no call to the GPU. Nothing is counted while the
// driver refuses to register for events.
constexpr Traits kReported{.wakes = false, .forgets = true};
constexpr Traits kReportedTime{.zero_is_unknown = true, .wakes = false, .forgets = true};
constexpr auto kXidRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_errors, {"xid", xid}, {xid_count, "nvmlEventSetWait_v2 XID", place}, 1, Tier::fast, {}, kReported};
});
constexpr auto kXidTimeRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_last_timestamp, {"xid", xid}, {xid_time, "nvmlEventSetWait_v2 XID", place}, 1, Tier::fast, {}, kReportedTime};
});
constexpr auto kEventRows = each_place(kEvents, [](std::size_t place, const EventKind& event) {
  return Row{&catalog::events, {"event", event.name}, {event_count, "nvmlEventSetWait_v2", place}, 1, Tier::fast, {}, kReported};
});
constexpr auto kOperationalRows = std::to_array<Row>({
  {&catalog::operational_event_overflows, {}, {operational_overflows, "nvmlEventSetWait_v3 overflow"}, 1, Tier::fast, {}, kReported},
});
// clang-format on

// Rows of NVLink and the fabric.

// clang-format off
// Fields 138 and 139 are sums of KiB over all links (scope: all ones). Errors of all links are separate
// fields. From NVLink 5 on they are fields of each link, and not every driver has a sum.
constexpr auto kInterconnectRows = std::to_array<Row>({
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", 138, Tier::fast, nvml::kAllLinks), kKibi, Tier::fast, {}, kPositive},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 139, Tier::fast, nvml::kAllLinks), kKibi, Tier::fast, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 202, Tier::fast, nvml::kAllLinks), 1, Tier::fast, {}, kPositive},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 204, Tier::fast, nvml::kAllLinks), 1, Tier::fast, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 202, Tier::normal), 1, Tier::normal, {}, kPositive},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 204, Tier::normal), 1, Tier::normal, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, gpm_link_total("GPM NVLink TX MiB/s", 61, 91), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, gpm_link_total("GPM NVLink RX MiB/s", 60, 91), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_transmitted_bytes, {"kind", "c2c"}, gpm_link_total("GPM C2C data TX MiB/s", 102, 170), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_received_bytes, {"kind", "c2c"}, gpm_link_total("GPM C2C data RX MiB/s", 103, 170), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_links, {"kind", "c2c"}, field("NVML_FI_DEV_C2C_LINK_COUNT", 170, Tier::slow), 1, Tier::slow, {}, kZeroIsUnknown},
    {&catalog::interconnect_links_up, {"kind", "c2c"}, c2c_up_fields("NVML_FI_DEV_C2C_LINK_GET_STATUS", 171), 1, Tier::slow},
    {&catalog::interconnect_links, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_LINK_COUNT", 91, Tier::slow), 1, Tier::slow, {}, kZeroIsUnknown},
    {&catalog::interconnect_links_up, {"kind", "nvlink"}, {links_up, "NVML_FI_DEV_NVLINK_GET_STATE, nvmlDeviceGetNvLinkState"}, 1, Tier::slow},
    {&catalog::interconnect_link_speed, {"kind", "nvlink"}, {links_speed, "NVML_FI_DEV_NVLINK_GET_SPEED"}, kMega, Tier::slow},
    {&catalog::interconnect_link_speed, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON", 90, Tier::slow), kMega, Tier::slow, {}, kZeroIsUnknown},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_flit"}, field("NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 38, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_data"}, field("NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 45, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "replay"}, field("NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 52, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, field("NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 59, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "ecc_data"}, field("NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL", 160, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_flit"}, {all_link_errors, "nvmlDeviceGetNvLinkErrorCounter", 2}, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_data"}, {all_link_errors, "nvmlDeviceGetNvLinkErrorCounter", 3}, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "replay"}, {all_link_errors, "nvmlDeviceGetNvLinkErrorCounter", 0}, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, {all_link_errors, "nvmlDeviceGetNvLinkErrorCounter", 1}, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "ecc_data"}, {all_link_errors, "nvmlDeviceGetNvLinkErrorCounter", 4}, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, field("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", 213, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", 213, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "discard"}, field("NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS", 212, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "discard"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS", 212, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_bit_error_ratio, {"kind", "nvlink", "error", "symbol"}, worst_ber_field("NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER", 222), 1, Tier::slow, {}, kRatio},
    {&catalog::interconnect_bit_error_ratio, {"kind", "nvlink", "error", "effective"}, worst_ber_field("NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER", 220), 1, Tier::slow, {}, kRatio},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "malformed_packet"}, field("NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS", 206, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "buffer_overrun"}, field("NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS", 207, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "receive"}, field("NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", 208, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "local_link_integrity"}, field("NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", 211, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery_failed"}, field("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", 214, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "malformed_packet"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS", 206, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "buffer_overrun"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS", 207, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "receive"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", 208, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "local_link_integrity"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", 211, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery_failed"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", 214, Tier::slow), 1, Tier::slow},
});

// Corrections, not errors: a link at full speed makes them all the time.
constexpr std::string_view kFecBins[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"};
constexpr auto kFecRows = each_place(kFecBins, [](std::size_t bin, std::string_view label) {
  NvidiaSource source = all_link_fields("NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0", 235, Tier::slow);
  source.read.argument += bin;
  return Row{&catalog::interconnect_fec_history, {"kind", "nvlink", "bin", label}, source, 1, Tier::slow};
});

// Rows of each link.
template <unsigned Field>
constexpr Row link_bytes(const MetricDescriptor& family, std::string_view name, double scale, unsigned link, std::string_view label) {
  return {&family, {"kind", "nvlink", "link", label}, each_link_field(name, link, Field, Tier::normal), scale, Tier::normal, {}, kPositive};
}
constexpr Row link_error(std::string_view error, unsigned counter, unsigned link, std::string_view label) {
  return {&catalog::link_errors, {"kind", "nvlink", "link", label, "error", error}, link_errors("nvmlDeviceGetNvLinkErrorCounter", link, counter), 1, Tier::slow};
}
template <unsigned Field>
constexpr Row fifth_link_error(std::string_view error, std::string_view name, unsigned link, std::string_view label) {
  return {&catalog::link_errors, {"kind", "nvlink", "link", label, "error", error}, link_field(name, link, Field), 1, Tier::slow};
}
template <unsigned Field>
constexpr Row link_ber(std::string_view error, std::string_view name, unsigned link, std::string_view label) {
  return {&catalog::link_bit_error_ratio, {"kind", "nvlink", "link", label, "error", error}, link_ber_field(name, link, Field), 1, Tier::slow, {}, kRatio};
}
template <unsigned Field>
constexpr Row c2c_error(std::string_view error, std::string_view name, unsigned link, std::string_view label) {
  return {&catalog::link_errors, {"kind", "c2c", "link", label, "error", error}, each_link_field(name, link, Field, Tier::slow), 1, Tier::slow};
}
using LinkRow = Row (*)(unsigned link, std::string_view label);
constexpr LinkRow kLinkRows[] = {
    [](unsigned link, std::string_view label) { return Row{&catalog::link_up, {"kind", "nvlink", "link", label}, link_state("NVML_FI_DEV_NVLINK_GET_STATE, nvmlDeviceGetNvLinkState", link), 1, Tier::slow}; },
    [](unsigned link, std::string_view label) { return Row{&catalog::link_speed, {"kind", "nvlink", "link", label}, link_field("NVML_FI_DEV_NVLINK_GET_SPEED", link, 164), kMega, Tier::slow, {}, kZeroIsUnknown}; },
    [](unsigned link, std::string_view label) { return link_bytes<138>(catalog::link_transmitted_bytes, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", kKibi, link, label); },
    [](unsigned link, std::string_view label) { return link_bytes<139>(catalog::link_received_bytes, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", kKibi, link, label); },
    [](unsigned link, std::string_view label) { return link_bytes<202>(catalog::link_transmitted_bytes, "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 1, link, label); },
    [](unsigned link, std::string_view label) { return link_bytes<204>(catalog::link_received_bytes, "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 1, link, label); },
    [](unsigned link, std::string_view label) { return link_error("replay", 0, link, label); },  // nvmlNvLinkErrorCounter_t
    [](unsigned link, std::string_view label) { return link_error("recovery", 1, link, label); },
    [](unsigned link, std::string_view label) { return link_error("crc_flit", 2, link, label); },
    [](unsigned link, std::string_view label) { return link_error("crc_data", 3, link, label); },
    [](unsigned link, std::string_view label) { return link_error("ecc_data", 4, link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<206>("malformed_packet", "NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<207>("buffer_overrun", "NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<208>("receive", "NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<209>("receive_remote", "NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<210>("receive_general", "NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<211>("local_link_integrity", "NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<212>("discard", "NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<213>("recovery", "NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", link, label); },
    [](unsigned link, std::string_view label) { return fifth_link_error<214>("recovery_failed", "NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", link, label); },
    [](unsigned link, std::string_view label) { return link_ber<222>("symbol", "NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER", link, label); },
    [](unsigned link, std::string_view label) { return link_ber<220>("effective", "NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER", link, label); },
};
// The links to the CPU (NVLink-C2C): kMostC2cLinks of them.
constexpr LinkRow kC2cRows[] = {
    [](unsigned link, std::string_view label) { return Row{&catalog::link_up, {"kind", "c2c", "link", label}, each_link_field("NVML_FI_DEV_C2C_LINK_GET_STATUS", link, 171, Tier::slow), 1, Tier::slow}; },
    [](unsigned link, std::string_view label) { return c2c_error<231>("crc", "NVML_FI_DEV_C2C_LINK_ERROR_INTR", link, label); },
    [](unsigned link, std::string_view label) { return c2c_error<232>("replay", "NVML_FI_DEV_C2C_LINK_ERROR_REPLAY", link, label); },
    [](unsigned link, std::string_view label) { return c2c_error<233>("replay_back_to_back", "NVML_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", link, label); },
};
constexpr std::string_view kLinkNames[] = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17",
    "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35",
    "36", "37", "38", "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51", "52", "53",
    "54", "55", "56", "57", "58", "59", "60", "61", "62", "63", "64", "65", "66", "67", "68", "69", "70", "71"};
static_assert(std::size(kLinkNames) == nvml::kMostLinks);

constexpr auto kFabricRows = std::to_array<Row>({
    {&catalog::fabric_state, {"state", "not_started"}, {fabric_state, "nvmlDeviceGetGpuFabricInfoV state", 1}, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "in_progress"}, {fabric_state, "nvmlDeviceGetGpuFabricInfoV state", 2}, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "completed"}, {fabric_state, "nvmlDeviceGetGpuFabricInfoV state", nvml::kFabricCompleted}, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "failed"}, {fabric_state, "nvmlDeviceGetGpuFabricInfoV status", kFabricFailed}, 1, Tier::slow},
    {&catalog::fabric_health, {"state", "healthy"}, {fabric_health, "nvmlDeviceGetGpuFabricInfoV health", FabricHealth::healthy}, 1, Tier::slow},
    {&catalog::fabric_health, {"state", "unhealthy"}, {fabric_health, "nvmlDeviceGetGpuFabricInfoV health", FabricHealth::unhealthy}, 1, Tier::slow},
    {&catalog::fabric_health, {"state", "limited_capacity"}, {fabric_health, "nvmlDeviceGetGpuFabricInfoV health", FabricHealth::limited_capacity}, 1, Tier::slow},
});
constexpr auto kFabricConditionRows = each_place(kFabricConditions, [](std::size_t place, const FabricCondition& of) {
  return Row{&catalog::fabric_condition, {"condition", of.name}, {fabric_condition, "nvmlDeviceGetGpuFabricInfoV health mask", place}, 1, Tier::slow};
});
// clang-format on

constexpr auto kTable =
    joined(kUtilizationRows, kGpmRows, kCauseTimes, kCauseRows, kReasonTimes, kReasonRows, kMemoryRows,
           kUnifiedMemoryRows, kPowerRows, kTemperatureRows, kClockRows, kClockMaxRows, kStateRows, kFanRows,
           kFanRpmRows, kPersistenceRows, kEccModeRows, kEccPendingRows, kMigModeRows, kMigPendingRows,
           kDisplayRows, kOtherModeRows, kEccRows, kMemoryHealthRows, kPcieRows, kInterconnectRows, kFecRows,
           kFabricRows, kFabricConditionRows, kRecoveryRows, kOtherRecoveryRows, kLicenseRows, kXidRows,
           kXidTimeRows, kEventRows, kOperationalRows, kPeakTableRows, kPeakFormulaRows, kPeakBandwidthRows);
// Rows of a MIG instance. Power, temperatures and clocks exist only for the whole GPU; processes are not
// attributed to instances here.
// clang-format off
constexpr auto kInstanceRows = std::to_array<Row>({
    {&catalog::partition_utilization, {}, {gpm, "GPM graphics", 1}, kPercent, Tier::fast, averaged(catalog::partition_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "encode"}, gpm_mean("GPM NVENC", 166, 4), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "decode"}, gpm_mean("GPM NVDEC", 30, 8), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "jpeg"}, gpm_mean("GPM NVJPG", 40, 8), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "optical_flow"}, gpm_mean("GPM NVOFA", 50, 2), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
});
// "Per instance information is currently only supported for non-DRAM uncorrectable volatile errors" (nvml.h at
// nvmlDeviceGetMemoryErrorCounter).
constexpr Location kInstanceWholes[] = {{"sram", 7}};
constexpr auto kInstanceEccRows = joined(
    each(kInstanceWholes, [](const Location& location) {
      return Row{&catalog::partition_memory_errors, {"severity", "uncorrected", "location", location.name}, ecc("nvmlDeviceGetMemoryErrorCounter", nvml::kUncorrected, nvml::kVolatile, location.id), 1, Tier::slow};
    }),
    ecc_part_rows(catalog::partition_memory_errors, nvml::kVolatile, "uncorrected", nvml::kUncorrected));

constexpr auto kInstanceMemoryRows = memory_rows({&catalog::partition_memory_size, &catalog::partition_memory_used, &catalog::partition_memory_free, &catalog::partition_memory_reserved});
constexpr auto kInstanceXidRows = each_place(kInstanceXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::partition_xid_errors, {"xid", xid}, {instance_xid_count, "nvmlEventSetWait_v2 XID", place}, 1, Tier::fast, {}, kReported};
});
// clang-format on
constexpr auto kPartitionTable = joined(kInstanceRows, kInstanceMemoryRows, gpm_rows(kPartitionFamilies),
                                        kInstanceEccRows, kInstanceXidRows);

static_assert(valid_table(kTable));
static_assert(valid_table(kPartitionTable));
static_assert(std::all_of(kTable.begin(), kTable.end(), in_its_tier));

// A thousand rows of links, of which few are ever bound: they are created on demand.
std::vector<Row> rows_with_links() {
  std::vector<Row> rows(kTable.begin(), kTable.end());
  std::ranges::copy(setting_rows(), std::back_inserter(rows));
  std::ranges::copy(power_sensor_rows(), std::back_inserter(rows));
  std::ranges::copy(cycle_rows(), std::back_inserter(rows));
  std::ranges::copy(profiled_rows(), std::back_inserter(rows));
  for (const LinkRow make_row : kLinkRows) {
    for (unsigned link = 0; link < nvml::kMostLinks; ++link) rows.push_back(make_row(link, kLinkNames[link]));
  }
  for (const LinkRow make_row : kC2cRows) {
    for (unsigned link = 0; link < nvml::kMostC2cLinks; ++link)
      rows.push_back(make_row(link, kLinkNames[link]));
  }
  return rows;
}

}  // namespace

std::span<const MetricRow<NvidiaContext>> nvidia_rows() {
  static const std::vector<Row> with_links = rows_with_links();
  return with_links;
}

std::span<const MetricRow<NvidiaContext>> nvidia_partition_rows() noexcept { return kPartitionTable; }

std::span<const RowDoc> nvidia_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<NvidiaContext>({nvidia_rows(), nvidia_partition_rows()});
  return docs;
}

}  // namespace gpumeter::nvidia
