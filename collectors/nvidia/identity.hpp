#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectors/api/device.hpp"
#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/nvidia/readers/peaks.hpp"

/// The identity of a GPU by NVML, at discovery and at attach. May block.
namespace gpumeter::nvidia {

/// All but `numa_node`, which the bus tells. nullopt if NVML returns no UUID: the driver holds it back while the
/// GPU is lost or being reset.
std::optional<DeviceInfo> identify(NvmlCaller& gpu, unsigned index);

/// The GPU of that UUID among those of the session.
std::optional<NvmlCaller> find_gpu(const std::shared_ptr<NvmlSession>& session, const std::string& uuid);

/// The facts from which peaks are computed or looked up.
Facts peak_facts(NvmlCaller& gpu);

}  // namespace gpumeter::nvidia
