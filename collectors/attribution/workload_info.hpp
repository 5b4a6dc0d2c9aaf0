#pragma once

#include "collectors/api/part.hpp"

namespace gpumeter::workloads {

/// Keeps gpu_workload_info in the store: one series for each workload that uses a device or was given one.
/// Names that the kubelet, Slurm or an administrator gave stay as last seen: Slurm's leave with the epilog,
/// the workload's series minutes later.
extern const PartEntry kInfo;

}  // namespace gpumeter::workloads
