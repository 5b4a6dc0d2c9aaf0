#pragma once

#include <span>
#include <string>

#include "collectors/api/workload_cost.hpp"

namespace gpumeter {

/// The body of /api/v1/workloads, a stable interface:
///
///     {"workloads":[
///     {"kind":"slurm_job","workload":"4711","state":"ended","start_timestamp_seconds":1700000000.5,
///      "end_timestamp_seconds":1700000060.5,"labels":{"slurm_job":"4711","user":"alice"},
///      "joules":15000.5,"gpu_seconds":60,"busy_seconds":45,"busy_ratio":0.75,"idle_ratio":0.25,
///      "peak_memory_bytes":1073741824,"throttled_seconds":{"power":3.5},
///      "devices":[{"gpu":"0","uuid":"GPU-...","joules":15000.5,...}]}
///     ]}
///
/// `state` is running or ended; the end of a running one is null. `gpu_seconds` is the time for which it had
/// processes on a device, summed over the devices; `busy_seconds` the time of its work, summed over devices
/// and processes; `idle_ratio` the part of gpu_seconds in which none of its work ran, and `busy_ratio` the
/// rest. `peak_memory_bytes` is the most on any one device. `throttled_seconds` is the time in which its
/// devices were throttled, by cause. Figures that no driver reports are null. The elements of `devices` have
/// the same figures.
std::string workloads_json(std::span<const WorkloadCost> workloads);

/// One workload as a line of NAME=VALUE, for a log or a comment; figures that are not known are left out. A
/// value with spaces or quotes is quoted as in JSON.
std::string workload_line(const WorkloadCost& workload);

}  // namespace gpumeter
