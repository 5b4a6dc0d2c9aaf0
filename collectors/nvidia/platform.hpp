#pragma once

#include <vector>

#include "collectors/api/series.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

/// The GPU's place in its machine, at attach. May block.
namespace gpumeter::nvidia {

/// False if NVML reports that the GPU has no memory: both calls return NOT_SUPPORTED, as on GB10, whose GPU
/// allocates the host's memory. True if a call fails in any other way.
bool has_own_memory(NvmlCaller& gpu);

/// The labels of gpu_platform_info; empty if the driver does not report the place. From Blackwell on, the
/// place in the rack (nvmlDeviceGetPlatformInfo). On boards with several GPU modules before it, the module.
std::vector<Label> platform_labels(NvmlCaller& gpu);

}  // namespace gpumeter::nvidia
