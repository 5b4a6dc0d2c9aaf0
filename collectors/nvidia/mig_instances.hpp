#pragma once

#include <string>
#include <vector>

#include "collectors/api/series.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// A GPU instance of a divided GPU. Its compute instances share its memory and its metrics, so it is the one
/// that is measured; the handle is its first compute instance's. Its multiprocessors are those of all of
/// them.
struct MigInstance {
  nvml::Device handle;
  unsigned gpu_instance;
  std::string uuid;  ///< of the first compute instance: ids are given again, uuids are not
  Partition partition;
  std::vector<nvml::Device> compute_instances{};  ///< handles, `handle` among them
  std::vector<std::string> compute_uuids{};       ///< theirs; empty if unknown
};

/// Empty where the GPU is not divided, or a call for the GPU failed. If a call failed that may succeed later,
/// `gpu` was_troubled() afterwards. May block.
std::vector<MigInstance> mig_instances(NvmlCaller& gpu);

/// How a GPU is divided, as one text to compare: "3g.40gb:1=MIG-..., ...", with the
/// uuids of several compute instances joined by "+".
std::string fingerprint(const std::vector<MigInstance>& instances);

}  // namespace gpumeter::nvidia
