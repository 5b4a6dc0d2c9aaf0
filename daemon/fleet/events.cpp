/// The part of Fleet that hears what drivers tell of by themselves.
#include <utility>

#include "daemon/fleet/fleet.hpp"

namespace gpumeter {

void Fleet::watch_events(const std::string& collector, CollectorHost& host) {
  if (!std::dynamic_pointer_cast<WatchesEvents>(host.collector)) return;
  if (!host.watcher && !start_watcher(collector, host)) return;
  if (!released_until_) host.watcher->watch(host.collector);
}

bool Fleet::start_watcher(const std::string& collector, CollectorHost& host) {
  const bool is_first = !host.event_thread.is_waiting();
  const bool hangs = left_behind_.has(collector, LeftBehind::kEvents);
  const std::weak_ptr<Fleet> fleet = weak_from_this();  // a hung wait may outlive the fleet
  const auto watcher = std::make_shared<EventWatcher>(clock_, [fleet](const DeviceEvent& event) {
    if (const auto alive = fleet.lock()) alive->tell(event);
  });
  const Result<Done> started =
      hangs ? Error("the wait that hung before the reload has not returned") : watcher->start(collector);
  if (started) {
    host.watcher = watcher;
    host.event_thread.succeeded();
    return true;
  }
  host.event_thread.failed(clock_.monotonic());
  if (is_first) {
    log_.error("events are not heard; it is tried again",
               {{"collector", collector}, {"error", started.error().message()}});
  }
  return false;
}

void Fleet::tell(const DeviceEvent& event) {
  MutexLock lock(mutex_);
  const KnownDevice* device = directory_.find(event.uuid);
  if (device == nullptr) return;
  log_.warn("the driver reports " + event.kind, {{"gpu", std::to_string(device->index)},
                                                 {"uuid", event.uuid},
                                                 {"vendor", device->info.vendor},
                                                 {"collector", device->collector}});
}

}  // namespace gpumeter
