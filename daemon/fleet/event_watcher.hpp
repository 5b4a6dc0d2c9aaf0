#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/worker.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/event_source.hpp"

namespace gpumeter {

/// Waits for the events of one collector's driver on a separate thread ("events-NAME"), because the wait
/// blocks in the driver.
class EventWatcher : public std::enable_shared_from_this<EventWatcher> {
 public:
  /// Called on the event thread, at most once a minute for each device and kind of event. The collector
  /// counts every event; the limit keeps a storm out of the log.
  using Report = std::function<void(const DeviceEvent&)>;

  EventWatcher(const Clock& clock, Report on_event)
      : clock_(clock), report_(std::move(on_event)), worker_(clock) {}

  /// Starts the thread. Call it once, and again only after an Error.
  Result<Done> start(const std::string& collector);

  /// Waits for events of this collector from now on; it must be a WatchesEvents. Null: waits for none. The
  /// thread frees the previous collector when the wait under way ends.
  void watch(std::shared_ptr<Collector> collector);

  /// After watch(nullptr): true when the thread holds no collector and is in no driver.
  bool is_idle() const { return worker_.is_idle(); }

  /// See Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

 private:
  Nanoseconds turn();
  void report(const std::vector<DeviceEvent>& events);

  const Clock& clock_;
  const Report report_;

  // Event thread only.
  std::shared_ptr<Collector> watched_;
  std::map<std::string, Nanoseconds> reported_;  ///< time of the last report, by device and kind

  Worker worker_;
  Mailbox<std::shared_ptr<Collector>> wanted_;
};

}  // namespace gpumeter
