#pragma once

#include "collectors/api/part.hpp"

namespace gpumeter::host {

/// The host's facts about its GPUs: the paths between them (gpu_topology_info), the pressure of the host's
/// memory and I/O, and the CPU time of the workloads that hold a GPU. Reads files of sysfs and procfs that no
/// GPU's driver serves.
extern const PartEntry kPart;

/// The number of paths grows with the square of the GPUs. With more GPUs than this there is no topology.
inline constexpr std::size_t kMostInTopology = 32;

}  // namespace gpumeter::host
