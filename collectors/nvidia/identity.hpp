#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/api/device.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/nvidia/readers/peaks.hpp"

/// The identity of a GPU from NVML, at discovery and at attach. May block.
namespace gpumeter::nvidia {

/// Fills all fields but `numa_node`, which comes from the bus. Returns nullopt if NVML returns no UUID: the
/// driver withholds it while the GPU is lost or being reset.
std::optional<DeviceInfo> identify(NvmlCaller& gpu, unsigned index);

/// Finds the GPU with that UUID in the session.
std::optional<NvmlCaller> find_gpu(const std::shared_ptr<NvmlSession>& session, const std::string& uuid);

/// The facts from which peaks are computed or looked up.
Facts peak_facts(NvmlCaller& gpu);

/// The GPU's sources in NVML, by group, to explain why a value is missing.
std::vector<SourceReport> sources_of_gpu(const std::string& library, const DeviceInfo& info);

}  // namespace gpumeter::nvidia
