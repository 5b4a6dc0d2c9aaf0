#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/abandonable_thread.hpp"
#include "base/mutex.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/event_source.hpp"

namespace gpumeter {

/// Waits for what one collector's driver tells of by itself, on a thread of its own, since it waits in the
/// driver.
class EventWatcher : public std::enable_shared_from_this<EventWatcher> {
 public:
  /// Called on the event thread, for a kind of event of a device at most once a minute: a storm is counted,
  /// not told blow by blow.
  using Tell = std::function<void(const DeviceEvent&)>;

  EventWatcher(const Clock& clock, Tell tell) : clock_(clock), tell_(std::move(tell)) {}

  /// Starts the thread. Once; again after an Error.
  Result<Done> start(const std::string& collector);

  /// From now on waits for events of this one, which must be a WatchesEvents; null: of nobody, and what was
  /// watched is let go as soon as the wait under way ends.
  void watch(std::shared_ptr<Collector> collector) GPUMETER_EXCLUDES(mutex_);

  /// True while it holds no collector and is in no driver.
  bool is_idle() const GPUMETER_EXCLUDES(mutex_);

  void request_stop() GPUMETER_EXCLUDES(mutex_);
  /// As Lane::join().
  bool join(Nanoseconds deadline) { return thread_.join(clock_, deadline); }

 private:
  void run() noexcept;
  std::shared_ptr<Collector> next() GPUMETER_EXCLUDES(mutex_);
  void tell(const std::vector<DeviceEvent>& events);
  void done() GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  const Tell tell_;
  std::map<std::string, Nanoseconds> told_;  // by device and kind: when; event thread only

  AbandonableThread thread_;
  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<Collector> watched_ GPUMETER_GUARDED_BY(mutex_);
  bool is_waiting_ GPUMETER_GUARDED_BY(mutex_) = false;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
