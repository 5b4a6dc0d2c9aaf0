#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "exporter/health/report.hpp"

namespace gpumeter {

/// The body of /api/v1/health, a stable interface:
///
///     {"devices":[
///     {"gpu":"0","uuid":"GPU-...","vendor":"nvidia","model":"NVIDIA H100","pci_address":"0000:17:00.0",
///      "state":"failed","since_seconds":12.3,"reasons":[{"reason":"xid_79","severity":"failed",
///      "action":"reboot","text":"XID 79: GPU has fallen off the bus","value":1,"since_seconds":12.3,
///      "alert":"GpuXid","runbook":"gpuxid"}]}
///     ],"machine":[],"state":"failed"}
///
/// `state` is ok, degraded, failed or unknown; `since_seconds` is the time for which the state or the reason
/// has held at `now`. `machine` lists reasons that belong to no device. Unknown texts are empty.
std::string health_json(const health::Report& report, Nanoseconds now);

/// Reads the body of /api/v1/health, received at `now`. Returns an Error if it does not have this form. The
/// devices have no `labels`.
Result<health::Report> parse_health_json(const std::string& body, Nanoseconds now);

/// The table of conditions, for --print-conditions=json.
std::string conditions_json();

}  // namespace gpumeter
