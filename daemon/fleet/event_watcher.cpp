#include "daemon/fleet/event_watcher.hpp"

#include <utility>

namespace gpumeter {
namespace {

// The length of one wait in the driver; release() and a stop wait up to that long.
constexpr auto kWait = std::chrono::milliseconds(500);
constexpr auto kUntilReportedAgain = std::chrono::minutes(1);

// Drivers have few kinds of events, but may include numbers in them.
constexpr std::size_t kMostReported = 1000;

}  // namespace

Result<Done> EventWatcher::start(const std::string& collector) {
  const std::shared_ptr<EventWatcher> self = shared_from_this();
  return worker_.start(
      "events-" + collector, [self] { return self->turn(); }, [self] { self->watched_.reset(); });
}

void EventWatcher::watch(std::shared_ptr<Collector> collector) {
  wanted_.post(std::move(collector), [](const auto&) { return true; });
  worker_.wake();
}

Nanoseconds EventWatcher::turn() {
  for (std::shared_ptr<Collector>& wanted : wanted_.take()) watched_ = std::move(wanted);
  if (!watched_) return Worker::kForever;
  report(dynamic_cast<WatchesEvents&>(*watched_).wait_for_events(kWait));
  return Nanoseconds{0};
}

void EventWatcher::report(const std::vector<DeviceEvent>& events) {
  const Nanoseconds now = clock_.monotonic();
  for (const DeviceEvent& event : events) {
    if (reported_.size() > kMostReported) reported_.clear();
    const auto [last, is_new] = reported_.try_emplace(event.uuid + "/" + event.kind, now);
    if (!is_new && now < last->second + kUntilReportedAgain) continue;
    last->second = now;
    report_(event);
  }
}

}  // namespace gpumeter
