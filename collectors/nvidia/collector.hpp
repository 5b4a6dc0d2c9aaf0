#pragma once

#include <memory>

#include "collectors/api/collector.hpp"
#include "collectors/nvidia/metrics.hpp"

namespace gpumeter::nvidia {

inline constexpr CollectorOption kNvidiaOptions[] = {
    {"library", CollectorOption::Kind::text, "libnvidia-ml.so.1",
     "NVML, which is part of the driver: a file name for the loader, or a path."},
    {"links", CollectorOption::Kind::text, "sum",
     "NVLink series. sum: totals of all links of a GPU; each: also a set per link."},
};

std::optional<OptionProblem> check_nvidia(const CollectorContext& context);
Result<std::unique_ptr<Collector>> open_nvidia(const CollectorContext& context);

/// GeForce to Hopper and later, through NVML. The driver has one lock for the calls to all GPUs, so more than
/// two parallel lanes would only wait. With two, the other GPUs can still be read when one hangs.
inline constexpr CollectorEntry kNvidia = {
    .name = "nvidia",
    .enabled_by_default = true,
    .max_parallel = 2,
    .options = kNvidiaOptions,
    .metrics = nvidia_row_docs,
    .check = check_nvidia,
    .open = open_nvidia,
};

}  // namespace gpumeter::nvidia
