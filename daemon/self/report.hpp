#pragma once

#include <functional>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "daemon/bus/watcher.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/log/log.hpp"
#include "exporter/http/server.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Puts the daemon's own figures (gpumeter_*, process_*) on the page.
class SelfReport {
 public:
  /// All outlive this object.
  struct Sources {
    const Clock& clock;
    Log& log;
    Store& store;
    const Fleet& fleet;
    const BusWatcher& bus;
    const HttpServer& server;
    std::function<bool()> simulates;  ///< whether devices on the page are made up
  };

  explicit SelfReport(Sources sources)
      : sources_(std::move(sources)),
        series_(sources_.store.attach()),
        reloaded_at_(sources_.clock.realtime()) {}

  /// How the last attempt to load the configuration ended. Any thread.
  void reloaded(bool successfully) GPUMETER_EXCLUDES(mutex_);

  /// Publishes all of it as it is now. Reads /proc/self, so it may take its time; one thread.
  void publish() GPUMETER_EXCLUDES(mutex_);

 private:
  void add_bus(SelfState& self);

  const Sources sources_;
  SeriesList series_;          // of the thread that publishes
  bool bus_was_late_ = false;  // likewise
  mutable Mutex mutex_;
  bool reload_ok_ GPUMETER_GUARDED_BY(mutex_) = true;
  Nanoseconds reloaded_at_ GPUMETER_GUARDED_BY(mutex_);  // CLOCK_REALTIME
};

}  // namespace gpumeter
