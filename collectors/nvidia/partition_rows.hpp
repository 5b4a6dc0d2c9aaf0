#pragma once

#include "collectors/nvidia/sensor_rows.hpp"

/// Rows of a MIG instance. Power, temperatures and clocks are the GPU's alone; processes are not told apart
/// here.
namespace gpumeter::nvidia {

// clang-format off
inline constexpr auto kInstanceRows = std::to_array<Row>({
    {&catalog::partition_utilization, {}, gpm("GPM graphics", 1), kPercent, Tier::fast, averaged(catalog::partition_busy_seconds), kRatio},
    {&catalog::partition_memory_size, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::total>("nvmlDeviceGetMemoryInfo_v2 total"), 1, Tier::normal, {}, {.min = 1}},
    {&catalog::partition_memory_used, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::used>("nvmlDeviceGetMemoryInfo_v2 used"), 1, Tier::normal, {}, kPositive},
    {&catalog::partition_memory_free, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::free>("nvmlDeviceGetMemoryInfo_v2 free"), 1, Tier::normal, {}, kPositive},
    {&catalog::partition_memory_reserved, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo_v2, &nvml::MemoryV2::reserved>("nvmlDeviceGetMemoryInfo_v2 reserved"), 1, Tier::normal, {}, kPositive},
    {&catalog::partition_memory_size, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::total>("nvmlDeviceGetMemoryInfo total"), 1, Tier::normal, {}, {.min = 1}},
    {&catalog::partition_memory_used, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::used>("nvmlDeviceGetMemoryInfo used"), 1, Tier::normal, {}, kPositive},
    {&catalog::partition_memory_free, {"memory", "vram"}, part<&F::nvmlDeviceGetMemoryInfo, &nvml::Memory::free>("nvmlDeviceGetMemoryInfo free"), 1, Tier::normal, {}, kPositive},
    {&catalog::partition_memory_size, {"memory", "bar1"}, part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::total>("nvmlDeviceGetBAR1MemoryInfo total"), 1, Tier::normal, {}, {.min = 1}},
    {&catalog::partition_memory_used, {"memory", "bar1"}, part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::used>("nvmlDeviceGetBAR1MemoryInfo used"), 1, Tier::normal, {}, kPositive},
    {&catalog::partition_memory_free, {"memory", "bar1"}, part<&F::nvmlDeviceGetBAR1MemoryInfo, &nvml::Bar1Memory::free>("nvmlDeviceGetBAR1MemoryInfo free"), 1, Tier::normal, {}, kPositive},
});
// clang-format on

}  // namespace gpumeter::nvidia
