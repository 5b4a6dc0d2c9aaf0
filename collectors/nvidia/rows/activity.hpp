#pragma once

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/readers/activity.hpp"
#include "collectors/nvidia/rows/traits.hpp"
#include "collectors/table/row.hpp"

/// Rows of the GPU's activity. Counters precede the gauges whose integral would be the same series.
namespace gpumeter::nvidia {

// clang-format off
// Field ids: nvml.h, NVML_FI_DEV_*; metric ids: NVML_GPM_METRIC_*. The driver has no utilisation of a divided
// GPU.
inline constexpr auto kUtilizationRows = std::to_array<Row>({
    {&catalog::busy_seconds, {}, sampled("nvmlDeviceGetSamples gpu", nvml::kGpuSamples), kPercent, Tier::fast, {}, kSampled},
    {&catalog::utilization_max, {"window", "1m"}, sampled_max("nvmlDeviceGetSamples gpu", nvml::kGpuSamples), kPercent, Tier::fast, {}, kRatio},
    {&catalog::utilization_min, {"window", "1m"}, sampled_min("nvmlDeviceGetSamples gpu", nvml::kGpuSamples), kPercent, Tier::fast, {}, kRatio},
    {&catalog::utilization, {}, part<&F::nvmlDeviceGetUtilizationRates, &nvml::Utilization::gpu>("nvmlDeviceGetUtilizationRates gpu"), kPercent, Tier::fast, averaged(catalog::busy_seconds).with(kUtilizationExtremes), kRatio},
    {&catalog::memory_controller_busy_seconds, {}, on_card<readers::bind_sampled_total>("nvmlDeviceGetSamples memory", nvml::kMemorySamples), kPercent, Tier::fast, {}, kSampled},
    {&catalog::memory_controller_utilization, {}, on_card<readers::bind_part<&F::nvmlDeviceGetUtilizationRates, &nvml::Utilization::memory>>("nvmlDeviceGetUtilizationRates memory"), kPercent, Tier::fast, averaged(catalog::memory_controller_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "encode"}, call<&F::nvmlDeviceGetEncoderUtilization>("nvmlDeviceGetEncoderUtilization"), kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, call<&F::nvmlDeviceGetDecoderUtilization>("nvmlDeviceGetDecoderUtilization"), kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, call<&F::nvmlDeviceGetJpgUtilization>("nvmlDeviceGetJpgUtilization"), kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "optical_flow"}, call<&F::nvmlDeviceGetOfaUtilization>("nvmlDeviceGetOfaUtilization"), kPercent, Tier::normal, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "encode"}, gpm_mean("GPM NVENC", 166, 4), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, gpm_mean("GPM NVDEC", 30, 8), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, gpm_mean("GPM NVJPG", 40, 8), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "optical_flow"}, gpm_mean("GPM NVOFA", 50, 2), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
    {&catalog::engine_utilization, {"engine", "graphics"}, gpm("GPM graphics", 1), kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},
});

/// The families that a GPU and a MIG instance have in common: one set for each.
struct GpmFamilies {
  const MetricDescriptor *compute, *compute_seconds, *occupancy, *occupancy_seconds, *pipe, *pipe_seconds, *tensor,
      *tensor_seconds, *bandwidth, *bandwidth_seconds;
};
inline constexpr GpmFamilies kGpuFamilies = {
    &catalog::compute_active, &catalog::compute_active_seconds, &catalog::compute_occupancy, &catalog::compute_occupancy_seconds,
    &catalog::pipe_active, &catalog::pipe_active_seconds, &catalog::tensor_active, &catalog::tensor_active_seconds,
    &catalog::memory_bandwidth_utilization, &catalog::memory_bandwidth_utilization_seconds};
inline constexpr GpmFamilies kPartitionFamilies = {
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
    {of.compute_seconds, {}, gpm_cycles("GPM SM cycles active / elapsed", 249), 1, Tier::fast},
    {of.compute, {}, gpm("GPM SM", 2), kPercent, Tier::fast, averaged(*of.compute_seconds), kRatio},
    {of.occupancy, {}, gpm("GPM SM occupancy", 3), kPercent, Tier::fast, averaged(*of.occupancy_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "tensor"}, gpm_cycles("GPM MMA cycles / elapsed", 250), 1, Tier::fast},
    {of.pipe, {"pipe", "tensor"}, gpm("GPM any tensor", 5), kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "fp64"}, gpm_cycles("GPM FP64 cycles / elapsed", 258), 1, Tier::fast},
    {of.pipe, {"pipe", "fp64"}, gpm("GPM FP64", 11), kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "fp32"}, gpm_cycles("GPM FP32 cycles / elapsed", 259), 1, Tier::fast},
    {of.pipe, {"pipe", "fp32"}, gpm("GPM FP32", 12), kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "fp16"}, gpm_cycles("GPM FP16 cycles / elapsed", 260), 1, Tier::fast},
    {of.pipe, {"pipe", "fp16"}, gpm("GPM FP16", 13), kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.pipe_seconds, {"pipe", "int"}, gpm_cycles("GPM integer cycles / elapsed", 257), 1, Tier::fast},
    {of.pipe, {"pipe", "int"}, gpm("GPM integer", 4), kPercent, Tier::fast, averaged(*of.pipe_seconds), kRatio},
    {of.tensor_seconds, {"kind", "fp64"}, gpm_cycles("GPM DFMA cycles / elapsed", 254), 1, Tier::fast},
    {of.tensor, {"kind", "fp64"}, gpm("GPM DFMA tensor", 6), kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.tensor, {"kind", "fp64"}, gpm("GPM DMMA tensor", 8), kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.tensor_seconds, {"kind", "fp16"}, gpm_cycles("GPM HMMA cycles / elapsed", 252), 1, Tier::fast},
    {of.tensor, {"kind", "fp16"}, gpm("GPM HMMA tensor", 7), kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.tensor_seconds, {"kind", "int"}, gpm_cycles("GPM IMMA cycles / elapsed", 253), 1, Tier::fast},
    {of.tensor, {"kind", "int"}, gpm("GPM IMMA tensor", 9), kPercent, Tier::fast, averaged(*of.tensor_seconds), kRatio},
    {of.bandwidth, {}, gpm("GPM DRAM bandwidth", 10), kPercent, Tier::fast, averaged(*of.bandwidth_seconds), kRatio},
  });
}
inline constexpr auto kGpmRows = gpm_rows(kGpuFamilies);

// Throttling. The seconds come from the hardware's counters if it has them; two counters of one cause are
// added.
struct Throttle {
  std::string_view cause, reason;
  std::uint64_t mask; // bits of nvml::EventReason
  unsigned field = 0, second = 0;  // NVML_FI_DEV_PERF_POLICY_*, ..._CLOCKS_EVENT_REASON_*
};
inline constexpr Throttle kCauses[] = {
    {"power", "", nvml::kReasonSwPowerCap | nvml::kReasonHwPowerBrake, 74, 271},
    {"power", "", nvml::kReasonSwPowerCap | nvml::kReasonHwPowerBrake, 74},
    {"thermal", "", nvml::kReasonSwThermal | nvml::kReasonHwThermal, 269, 270},
    {"thermal", "", nvml::kReasonSwThermal | nvml::kReasonHwThermal, 75},
    {"sync", "", nvml::kReasonSyncBoost, 76},
    {"reliability", "", 0, 77, 79},
    {"hardware", "", nvml::kReasonHwSlowdown},
    {"software", "", nvml::kReasonApplicationsClocks | nvml::kReasonDisplayClocks},
};
inline constexpr Throttle kReasons[] = {
    {"power", "sw_power_cap", nvml::kReasonSwPowerCap, 74},
    {"power", "hw_power_brake", nvml::kReasonHwPowerBrake, 271},
    {"thermal", "sw_thermal", nvml::kReasonSwThermal, 269},
    {"thermal", "hw_thermal", nvml::kReasonHwThermal, 270},
    {"sync", "sync_boost", nvml::kReasonSyncBoost, 76},
    {"reliability", "board_limit", 0, 77},
    {"reliability", "reliability", 0, 79},
    {"hardware", "hw_slowdown", nvml::kReasonHwSlowdown},
    {"software", "applications_clocks", nvml::kReasonApplicationsClocks},
    {"software", "display_clocks", nvml::kReasonDisplayClocks},
};
inline constexpr auto kCauseTimes = each(kCauses, [](const Throttle& row) {
  return Row{&catalog::throttle_seconds, {"cause", row.cause}, throttle_time("field values: throttle counters", row.field, row.second), 1, Tier::fast};
});
inline constexpr auto kCauseRows = each(kCauses, [](const Throttle& row) {
  return Row{&catalog::throttled, {"cause", row.cause}, reasons("nvmlDeviceGetCurrentClocksEventReasons", row.mask), 1, Tier::fast, state(catalog::throttle_seconds)};
});
inline constexpr auto kReasonTimes = each(kReasons, [](const Throttle& row) {
  return Row{&catalog::throttle_reason_seconds, {"cause", row.cause, "reason", row.reason}, throttle_time("field values: throttle counters", row.field, row.second), 1, Tier::fast};
});
inline constexpr auto kReasonRows = each(kReasons, [](const Throttle& row) {
  return Row{&catalog::throttle_reason_active, {"cause", row.cause, "reason", row.reason}, reasons("nvmlDeviceGetCurrentClocksEventReasons", row.mask), 1, Tier::fast, state(catalog::throttle_reason_seconds)};
});
// clang-format on

}  // namespace gpumeter::nvidia
