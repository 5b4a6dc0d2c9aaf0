#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "collectors/jobs/join/run_join.hpp"
#include "collectors/jobs/model/run_list.hpp"

namespace gpumeter::jobs {

using OwnerName = std::function<std::string(std::uint32_t uid)>;

/// The body of /api/v1/processes, a stable interface:
///
///     {"processes":[
///     {"pid":4711,"start_ticks":99,"uid":1000,"owner":"alice","group":"/system.slice/vllm.service",
///      "kind":"systemd_unit","workload":"vllm.service","user":"alice","run":"train",
///      "devices":[{"uuid":"GPU-...","gpu":0,"present":true,"joules":12.5,"busy_seconds":null}]}
///     ]}
///
/// A process is identified by `pid` and `start_ticks` (field 22 of /proc/PID/stat). `present` is false for a
/// minute after its end; its figures are final then. `user` and `run` are those of the run that it works for.
/// What is unknown is null.
std::string processes_json(const DeviceUses& devices, const RunList& runs, const OwnerName& owner_of);

/// The body of /api/v1/runs, a stable interface: the runs that jobs report, and the processes that report
/// them.
///
///     {"runs":[
///     {"user":"alice","run":"train","state":"running"}
///     ],"processes":[
///     {"pid":4711,"start_ticks":99,"uid":1000,"user":"alice","run":"train"}
///     ]}
std::string runs_json(const RunList& runs);

}  // namespace gpumeter::jobs
