#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectors/api/device.hpp"
#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/nvidia/readers/peaks.hpp"

/// Who a GPU is, asked of NVML at discovery and at attach. May block.
namespace gpumeter::nvidia {

/// All but `numa_node`, which is the bus's to say. nullopt where NVML does not say who it is: the driver
/// holds it back while the GPU is lost or being reset.
std::optional<DeviceInfo> identify(NvmlCaller& gpu, unsigned index);

/// The GPU of that uuid among those of the session, whatever its index is now.
std::optional<NvmlCaller> find_gpu(const std::shared_ptr<NvmlSession>& session, const std::string& uuid);

/// What the peaks are computed or looked up from.
Facts peak_facts(NvmlCaller& gpu);

}  // namespace gpumeter::nvidia
