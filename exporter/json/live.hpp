#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "exporter/health/report.hpp"
#include "exporter/history/picture.hpp"

namespace gpumeter {

/// What the answer has in addition to the picture.
struct LiveFacts {
  Nanoseconds realtime{};                               ///< CLOCK_REALTIME
  Nanoseconds monotonic{};                              ///< CLOCK_MONOTONIC, as in the report
  const health::Report* report = nullptr;               ///< null: none yet
  std::span<const std::vector<float>> sparklines = {};  ///< of each GPU of the picture; empty: omitted
};

/// The body of /api/v1/live, which the page at `/` fetches once a second: every GPU and run of the picture,
/// one a line. Fields may be added.
///     {"time":1700000000.5,"simulated":false,"gpus":[
///     {"gpu":"0","uuid":"GPU-..","vendor":"nvidia","model":"..","name":"","pci_address":"..","up":true,
///      "suspended":false,"state":"failed","reasons":[{"reason":"xid_79","severity":"failed","action":"reboot",
///      "text":"..","alert":"GpuXid","since_seconds":1.5}],"memory_size_bytes":85899345920,
///      "values":{"utilization_ratio":0.5,..},"throttled":["power"],
///      "holders":[{"kind":"slurm_job","workload":"4711","share":1,"user":"ann"}],
///      "runs":[{"run":"bert","user":"ann"}]}],
///     "machine":[..],"runs":[{"run":"bert","user":"ann","gpus":["0"],"status":"",..}]}
/// `values` has the columns of /api/v1/history; null: no value. `machine` has the findings that belong to no
/// GPU. Without a report, `state` is ok or failed by gpu_up. With sparklines each GPU has its "utilization"
/// of the last 300 seconds.
std::string live_json(const Picture& picture, const LiveFacts& facts);

}  // namespace gpumeter
