/// The part of Fleet that hears what drivers tell of by themselves.
#include <utility>

#include "daemon/fleet.hpp"

namespace gpumeter {

void Fleet::watch_events(const std::string& collector, CollectorHost& host) {
  if (!std::dynamic_pointer_cast<WatchesEvents>(host.collector)) return;
  if (!host.watcher) {
    const std::weak_ptr<Fleet> fleet = weak_from_this();  // a hung wait may outlive the fleet
    host.watcher = std::make_shared<EventWatcher>(clock_, [fleet](const DeviceEvent& event) {
      if (const auto alive = fleet.lock()) alive->tell(event);
    });
    if (const Result<Done> started = host.watcher->start(collector); !started) {
      host.watcher.reset();  // the next discovery tries again
      return log_.error("events are not heard",
                        {{"collector", collector}, {"error", started.error().message()}});
    }
  }
  if (!released_until_) host.watcher->watch(host.collector);
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
