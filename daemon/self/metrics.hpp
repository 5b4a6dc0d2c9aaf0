#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/device_status.hpp"
#include "collectors/api/sample.hpp"
#include "daemon/drm/scans.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter {

/// The kernel's figures of the daemon's own process, in base units.
struct ProcessStats {
  double cpu_seconds;
  double start_time_seconds;  ///< since 1970, to the second: the kernel reports the boot time in whole
                              ///< seconds
  double virtual_bytes;
  double resident_bytes;
  double threads;
  double open_fds;
  double max_fds;  ///< soft limit; +Inf if there is none
};

/// Reads <procfs>/self and <procfs>/stat; `procfs` is "/proc" except in tests. Takes a few microseconds and
/// never blocks. Returns an Error if a file is missing or does not match proc(5).
Result<ProcessStats> read_process_stats(const std::string& procfs);

/// The health of one collector.
struct CollectorHealth {
  std::string name;
  bool up = false;
  bool released = false;  ///< its drivers are closed on purpose
  unsigned devices = 0;
  std::optional<double> last_success_timestamp_seconds = {};  ///< nullopt before the first success
  /// By the GPU's index, also for GPUs that are gone. ReadStatus::ok is not an error and not exported.
  std::map<unsigned, ReadErrors> read_errors = {};
  std::vector<DeniedValues> denied = {};
};

/// Duration of the last pass of one tier over one device.
struct PassDuration {
  std::string collector;
  unsigned gpu;
  std::string tier;
  double seconds;
};

/// The last attempt to load the web configuration.
struct WebConfigLoad {
  bool is_successful;
  double timestamp_seconds;  ///< of the last successful attempt, since 1970
};

/// The daemon's own figures, collected about once a second.
struct SelfState {
  BuildFacts build = {};
  bool simulated = false;
  bool config_reload_successful = true;
  double config_reload_timestamp_seconds = 0;                       ///< since 1970
  std::optional<WebConfigLoad> web_config = {};                     ///< nullopt: none is configured
  std::optional<double> certificate_expiry_timestamp_seconds = {};  ///< nullopt: plain HTTP
  std::vector<CollectorHealth> collectors = {};
  std::vector<PassDuration> passes = {};
  std::vector<std::pair<std::string, bool>> parts = {};                ///< by name: whether it answers
  std::vector<std::pair<std::string, unsigned>> pci_devices = {};      ///< by vendor
  std::map<std::string, unsigned> devices_expected = {};               ///< by vendor; "any": of the machine
  std::vector<std::pair<unsigned, std::uint64_t>> http_requests = {};  ///< HttpServer::counts()
  std::optional<DrmScans::Figures> drm_scans = {};                     ///< nullopt: no device is watched
  std::uint64_t log_dropped = 0;                                       ///< records
  std::optional<ProcessStats> process = {};
};

/// Adds the series of collectors/api/self_catalog.hpp.
void add_self_series(const SelfState& state, SeriesList& to);

}  // namespace gpumeter
