#include "daemon/fleet/event_watcher.hpp"

#include <exception>
#include <utility>

namespace gpumeter {
namespace {

// How long one wait in the driver lasts: what release() and a stop have to wait for.
constexpr auto kWait = std::chrono::milliseconds(500);
constexpr auto kUntilToldAgain = std::chrono::minutes(1);
constexpr auto kUntilWatched = std::chrono::hours(1);

// Kinds are few, but a driver may have numbers of its own in them.
constexpr std::size_t kMostTold = 1000;

}  // namespace

Result<Done> EventWatcher::start(const std::string& collector) {
  return thread_.start("events-" + collector, [self = shared_from_this()] { self->run(); });
}

void EventWatcher::watch(std::shared_ptr<Collector> collector) {
  MutexLock lock(mutex_);
  watched_ = std::move(collector);
  changed_.notify_all();
}

bool EventWatcher::is_idle() const {
  MutexLock lock(mutex_);
  return watched_ == nullptr && !is_waiting_;
}

void EventWatcher::request_stop() {
  MutexLock lock(mutex_);
  stop_ = true;
  watched_.reset();
  changed_.notify_all();
}

void EventWatcher::run() noexcept {
  while (std::shared_ptr<Collector> collector = next()) {
    try {
      tell(dynamic_cast<WatchesEvents&>(*collector).wait_for_events(kWait));
    } catch (const std::exception&) {  // out of memory: what it would have told is counted all the same
    }
    collector.reset();
    done();
  }
}

// Null: stop.
std::shared_ptr<Collector> EventWatcher::next() {
  MutexLock lock(mutex_);
  while (!stop_ && watched_ == nullptr) changed_.wait_for(mutex_, kUntilWatched);
  is_waiting_ = !stop_;
  return stop_ ? nullptr : watched_;
}

void EventWatcher::done() {
  MutexLock lock(mutex_);
  is_waiting_ = false;
}

void EventWatcher::tell(const std::vector<DeviceEvent>& events) {
  const Nanoseconds now = clock_.monotonic();
  for (const DeviceEvent& event : events) {
    if (told_.size() > kMostTold) told_.clear();
    const auto [last, is_new] = told_.try_emplace(event.uuid + "/" + event.kind, now);
    if (!is_new && now < last->second + kUntilToldAgain) continue;
    last->second = now;
    tell_(event);
  }
}

}  // namespace gpumeter
