/// The part of Fleet that starts its threads, and again those that the kernel refused or that have to wait
/// for one that hangs.
#include <algorithm>

#include "daemon/fleet/fleet.hpp"

namespace gpumeter {

void Fleet::start_discovery(const std::string& collector, CollectorHost& host) {
  const bool is_first = !host.discovery_thread.is_waiting();
  const bool hangs = left_behind_.has(collector, LeftBehind::kDiscovery);
  const Result<Done> started =
      hangs ? Error("the discovery that hung before the reload has not returned") : host.discoverer->start();
  host.is_looking = static_cast<bool>(started);
  if (started) return host.discovery_thread.succeeded();
  host.discovery_thread.failed(clock_.monotonic());
  if (!is_first) return;
  log_.error("devices are not looked for; it is tried again",
             {{"collector", collector}, {"error", started.error().message()}});
}

// A device without a thread has gpu_up 0, and its reason in the log and in the list of devices.
void Fleet::start_lane(Member& member) {
  const Result<Done> started = member.lane->start();
  member.is_started = static_cast<bool>(started);
  if (started) return member.thread.succeeded();
  member.thread.failed(clock_.monotonic());
}

void Fleet::start_threads() {
  const Nanoseconds now = clock_.monotonic();
  for (auto& [name, host] : hosts_) {
    if (!host.is_looking && host.discovery_thread.is_due(now)) start_discovery(name, host);
    if (host.event_thread.is_waiting() && host.event_thread.is_due(now)) watch_events(name, host);
  }
  for (Member& member : members_) {
    if (!member.is_started && member.thread.is_due(now)) start_lane(member);
  }
}

// Where a call that hung over a reload has returned, its device can be read again.
void Fleet::look_for_returned() {
  for (const std::string& collector : left_behind_.take_ended()) {
    const auto host = hosts_.find(collector);
    if (host != hosts_.end() && !released_until_) host->second.discoverer->request();
  }
}

}  // namespace gpumeter
