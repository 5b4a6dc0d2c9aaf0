#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/device_status.hpp"
#include "collectors/api/sample.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/drm/scans.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/web/web_config.hpp"
#include "exporter/http/server.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

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

/// The daemon's own figures, collected about once a second.
struct SelfState {
  BuildFacts build = {};
  bool simulated = false;
  bool config_reload_successful = true;
  double config_reload_timestamp_seconds = 0;                       ///< since 1970
  std::optional<WebReload> web_config = {};                         ///< nullopt: none is configured
  std::optional<double> certificate_expiry_timestamp_seconds = {};  ///< nullopt: plain HTTP
  std::vector<CollectorHealth> collectors = {};
  std::vector<PassDuration> passes = {};
  std::vector<std::pair<std::string, bool>> parts = {};                ///< by name: whether it answers
  std::vector<std::pair<std::string, unsigned>> pci_devices = {};      ///< by vendor
  std::vector<Labels> given_devices = {};                              ///< Bus::given()
  std::map<std::string, unsigned> devices_expected = {};               ///< by vendor; "any": of the machine
  std::vector<std::pair<unsigned, std::uint64_t>> http_requests = {};  ///< HttpServer::counts()
  std::optional<DrmScans::Figures> drm_scans = {};                     ///< nullopt: no device is watched
  std::uint64_t log_dropped = 0;                                       ///< records
  std::optional<ProcessStats> process = {};
};

/// Adds the series of collectors/api/self_catalog.hpp.
void add_self_series(const SelfState& state, SeriesList& to);

/// Publishes the daemon's own figures (gpumeter_*, process_*).
class SelfReport {
 public:
  /// All must outlive this object.
  struct Sources {
    const Clock& clock;
    Log& log;
    Store& store;
    const Fleet& fleet;
    const BusWatcher& bus;
    const HttpServer& server;
    const PartHost& parts;
    std::function<bool()> simulates;                            ///< true if devices on the page are simulated
    std::function<std::map<std::string, unsigned>()> expected;  ///< devices.expected, by vendor
    const WebConfig* web = nullptr;                             ///< null: no web configuration
    const DrmScans* drm = nullptr;                              ///< null: no scans of DRM clients
  };

  explicit SelfReport(Sources sources)
      : sources_(std::move(sources)),
        series_(sources_.store.attach()),
        reloaded_at_(sources_.clock.realtime()) {}

  /// Records the result of the last attempt to load the configuration. Any thread.
  void reloaded(bool successfully) GPUMETER_EXCLUDES(mutex_);

  /// Publishes all current figures. Reads /proc/self, which may take time; one thread.
  void publish() GPUMETER_EXCLUDES(mutex_);

 private:
  void add_bus(SelfState& self);
  void report_descriptors();

  const Sources sources_;
  SeriesList series_;                // of the publishing thread
  bool bus_was_late_ = false;        // of the publishing thread
  bool lacked_descriptors_ = false;  // of the publishing thread
  mutable Mutex mutex_;
  bool reload_ok_ GPUMETER_GUARDED_BY(mutex_) = true;
  Nanoseconds reloaded_at_ GPUMETER_GUARDED_BY(mutex_);  // CLOCK_REALTIME
};

}  // namespace gpumeter
