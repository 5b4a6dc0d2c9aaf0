#pragma once

#include <memory>
#include <span>

#include "collectors/api/collector.hpp"
#include "collectors/nvidia/context.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::nvidia {

/// The table of all values of a GPU, and of each of its MIG instances.
std::span<const MetricRow<NvidiaContext>> nvidia_rows();
std::span<const MetricRow<NvidiaContext>> nvidia_partition_rows() noexcept;

std::span<const RowDoc> nvidia_row_docs();

inline constexpr CollectorOption kNvidiaOptions[] = {
    {"library", CollectorOption::Kind::text, "libnvidia-ml.so.1",
     "NVML, which is part of the driver: a file name for the loader, or a path."},
    {"links", CollectorOption::Kind::text, "sum",
     "NVLink series. sum: totals of all links of a GPU, and state, speed and errors of the links that have "
     "something to say, at most the worst 4; each: a set per link."},
    {"dcgm", CollectorOption::Kind::text, "off",
     "Profiling counters of GPUs before Hopper, by DCGM's library and a host engine (nv-hostengine) that "
     "runs. While they are counted, no profiler of a job can use the GPUs. on: the engine at 127.0.0.1; "
     "HOST:PORT or unix:/PATH: another one; off: none."},
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
