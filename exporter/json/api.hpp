#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/api/device_status.hpp"
#include "collectors/api/event_ledger.hpp"
#include "collectors/api/workload_cost.hpp"
#include "exporter/health/report.hpp"
#include "exporter/history/history.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// The body of /api/v1/devices, a stable interface:
///
///     {"devices": [{
///       "index": 0, "uuid": "GPU-...", "vendor": "nvidia", "model": "NVIDIA H100", "pci_address":
///       "0000:17:00.0", "collector": "nvidia", "driver": "nvidia", "up": true, "state": "ok",
///       "last_success_timestamp_seconds": 1700000000.25}],
///      "unread": [{
///       "pci_address": "0000:65:00.0", "vendor": "amd", "pci_id": "1002:73bf", "driver": null, "module":
///       "amdgpu", "why": "no driver is bound to it: ...", "remedy": "modprobe amdgpu; ..."}]}
///
/// Unknown values are null; `uuid`, `collector` and `state` are always strings. `unread` lists the GPUs on
/// the PCI bus that no collector reads, `module` the kernel module that would make one readable.
std::string devices_json(std::span<const DeviceStatus> devices, std::span<const UnreadDevice> unread);

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

/// What the answer has in addition to the picture.
struct LiveFacts {
  Nanoseconds realtime{};                               ///< CLOCK_REALTIME
  Nanoseconds monotonic{};                              ///< CLOCK_MONOTONIC, as in the report
  const health::Report* report = nullptr;               ///< null: none yet
  std::span<const std::vector<float>> sparklines = {};  ///< of each GPU of the picture; empty: omitted
  std::string_view host = {};                           ///< the machine's name
};

/// The body of /api/v1/live, which the page at `/` fetches once a second: every GPU and run of the picture,
/// one a line. Fields may be added.
///     {"time":1700000000.5,"host":"node17","simulated":false,"gpus":[
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

/// The same as a message of text/event-stream: an event `picture` with one line of data for each of the text.
std::string picture_of_stream(std::string_view live_json);

/// The body of /api/v1/history, a stable interface. The arguments are gpu=INDEX, uuid=UUID, or run=NAME and
/// user=USER; and range=5m (one value a second; the default) or range=6h (one for each 15 s):
///     {"gpu":"0","uuid":"GPU-..","range":"5m","step_seconds":1,"times":[1700000000,1700000001],
///      "columns":{"utilization_ratio":[0.5,null],..},"events":[{"time":1700000000,"name":"xid_79","kind":"event"}]}
/// `times` are the Unix times at which the slots start; null: no value. With range=6h a column is
/// {"min":[..],"mean":[..],"max":[..]}. A run has "run" and "user" instead of "gpu", "uuid" and "events". The
/// Error names the wrong argument and the valid ones.
Result<std::string> history_json(const History& history,
                                 std::span<const std::pair<std::string_view, std::string_view>> arguments);

/// The body of /api/v1/series, a stable interface, with one series a line:
///     {"series":[{"name":"gpu_up","labels":{"gpu":"0"},"value":1,"unit":"","type":"gauge","age_seconds":0.4}]}
/// Each text of `match` selects series as in PromQL, with the operators = and !=: `name`,
/// `name{label="value"}` or `{label!="value"}`. The page lists a series if any of them selects it, and all
/// series if `match` is empty. `name` is the name on the text page; the name of a histogram selects all of
/// its series. NaN, +Inf and -Inf are strings. `age_seconds` is the time since the series' source last
/// committed. The Error names the wrong text and the valid syntax.
Result<std::string> series_json(const Store& store, std::span<const std::string_view> match, Nanoseconds now);

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

/// The body of /api/v1/events, a stable interface: the last events of all sources, one a line, the oldest
/// first. Fields may be added.
///     {"events":[
///     {"id":1700000000500000,"time":1700000000.5,"time_estimated":false,"source":"kernel",
///      "device":{"gpu":"0","uuid":"GPU-..","pci_address":"0000:17:00.0","vendor":"nvidia"},
///      "kind":"xid","code":79,"subcode":null,"link":null,"instance":null,"pid":null,"count":1,
///      "meaning":"..","severity":"failed","action":"reboot","text":"GPU has fallen off the bus."}
///     ]}
/// `time` is a Unix time; `count`: so many equal events within a minute. Unknown values are null. `text` is
/// that of the log, in which programs choose some words, such as the name of a process.
std::string events_json(std::span<const EventRecord> events, std::span<const DeviceIdentity> devices);

/// The same event as a message of text/event-stream.
std::string event_of_stream(const EventRecord& event, std::span<const DeviceIdentity> devices);

/// One workload as a line of NAME=VALUE, for a log or a comment; figures that are not known are left out. A
/// value with spaces or quotes is quoted as in JSON.
std::string workload_line(const WorkloadCost& workload);

}  // namespace gpumeter
