#pragma once

#include <string>
#include <vector>

#include "collectors/api/series.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// A GPU instance of a divided GPU. Its compute instances share its memory and its metrics, so the GPU
/// instance is the unit of measurement. The handle is that of its first compute instance. Its multiprocessors
/// are the sum over all compute instances.
struct MigInstance {
  nvml::Device handle;
  unsigned gpu_instance;
  std::string uuid;  ///< of the first compute instance: ids are reused, uuids are not
  Partition partition;
  std::vector<nvml::Device> compute_instances{};  ///< handles, `handle` among them
  std::vector<std::string> compute_uuids{};       ///< uuids of the same; empty if unknown
};

/// Empty if the GPU is not divided, or if a call for the GPU failed. If a call failed that may succeed later,
/// `gpu` was_troubled() afterwards. May block.
std::vector<MigInstance> mig_instances(NvmlCaller& gpu);

/// A text that describes the division, for comparison: "3g.40gb:1=MIG-..., ...". The uuids of several compute
/// instances are joined by "+".
std::string fingerprint(const std::vector<MigInstance>& instances);

}  // namespace gpumeter::nvidia
