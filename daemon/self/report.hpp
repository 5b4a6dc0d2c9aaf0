#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/drm/scans.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/parts/host.hpp"
#include "daemon/web/web_config.hpp"
#include "exporter/http/server.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

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
