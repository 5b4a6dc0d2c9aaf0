#include "daemon/fleet/collector_host.hpp"

#include <cmath>
#include <utility>

namespace gpumeter {

CollectorHost::CollectorHost(const CollectorEntry& entry, CollectorContext context, Discoverer::Report report,
                             EventWatcher::Report on_event, const Clock& clock, Log& log)
    : name_(entry.name),
      clock_(clock),
      log_(log),
      gate_(std::make_shared<DriverGate>(entry.max_parallel, clock)),
      discoverer_(std::make_shared<Discoverer>(entry, std::move(context), std::move(report))),
      watcher_(std::make_shared<EventWatcher>(clock, std::move(on_event))) {}

void CollectorHost::start_threads(const LeftBehind& left_behind) {
  const Nanoseconds now = clock_.monotonic();
  if (!is_looking_ && discovery_thread_.is_due(now)) start_discovery(left_behind);
  const bool has_events = std::dynamic_pointer_cast<WatchesEvents>(collector_) != nullptr;
  if (has_events && !is_watching_ && event_thread_.is_due(now)) start_events(left_behind);
}

void CollectorHost::start_discovery(const LeftBehind& left_behind) {
  const bool is_first = !discovery_thread_.is_waiting();
  const bool hangs = left_behind.has(name_, LeftBehind::kDiscovery);
  const Result<Done> started =
      hangs ? Error("the discovery that hung before the reload has not returned") : discoverer_->start();
  is_looking_ = static_cast<bool>(started);
  if (started) return discovery_thread_.succeeded();
  discovery_thread_.failed(clock_.monotonic());
  if (!is_first) return;
  log_.error("discovery cannot start; the daemon retries",
             {{"collector", name_}, {"error", started.error().message()}});
}

void CollectorHost::start_events(const LeftBehind& left_behind) {
  const bool is_first = !event_thread_.is_waiting();
  const bool hangs = left_behind.has(name_, LeftBehind::kEvents);
  const Result<Done> started =
      hangs ? Error("the wait that hung before the reload has not returned") : watcher_->start(name_);
  is_watching_ = static_cast<bool>(started);
  if (started) {
    event_thread_.succeeded();
    return watcher_->watch(collector_);
  }
  event_thread_.failed(clock_.monotonic());
  if (!is_first) return;
  log_.error("events cannot be watched; the daemon retries",
             {{"collector", name_}, {"error", started.error().message()}});
}

// A discovery that was under way during the release of the drivers has opened its own collector again.
void CollectorHost::report(std::shared_ptr<Collector> opened, const Result<Discovery>& found) {
  has_reported_ = true;
  is_up_ = static_cast<bool>(found);
  error_ = found ? "" : found.error().message();
  if (!is_paused_) collector_ = std::move(opened);
  const bool has_events = std::dynamic_pointer_cast<WatchesEvents>(collector_) != nullptr;
  if (has_events && is_watching_) watcher_->watch(collector_);
  if (!found) return say_once(found.error().message());
  denied_ = found->denied;
  for (const std::string& note : found->notes) say_once(note);
}

void CollectorHost::say_once(const std::string& note) {
  if (said_.insert(note).second) log_.warn(note, {{"collector", name_}});
}

void CollectorHost::look(bool has_lost_device) {
  const bool was_late = std::exchange(is_late_, discoverer_->is_late());
  if (was_late && !is_late_) log_.info("discovery answers again", {{"collector", name_}});
  if (is_late_ && !was_late) {
    log_.error("discovery does not answer; no device is found until its driver call returns",
               {{"collector", name_}});
  }
  if (!has_lost_device) return rediscovery_.succeeded();
  const Nanoseconds now = clock_.monotonic();
  if (is_paused_ || !rediscovery_.is_due(now)) return;
  if (rediscovery_.is_waiting()) request();
  rediscovery_.failed(now);
}

// The discovery thread releases the collector last, and closes the driver.
void CollectorHost::release() {
  is_paused_ = true;
  collector_.reset();
  if (is_watching_) watcher_->watch(nullptr);
  discoverer_->pause(true);
}

void CollectorHost::restore() {
  is_paused_ = false;
  discoverer_->pause(false);
}

bool CollectorHost::is_released() const { return discoverer_->is_idle() && watcher_->is_idle(); }

void CollectorHost::request_stop() {
  collector_.reset();
  gate_->close();
  watcher_->request_stop();
  discoverer_->request_stop();
}

void CollectorHost::join(Nanoseconds deadline, LeftBehind& hanging) {
  if (!discoverer_->join(deadline)) hanging.add(name_, LeftBehind::kDiscovery, discoverer_);
  if (!watcher_->join(deadline)) hanging.add(name_, LeftBehind::kEvents, watcher_);
}

double CollectorHost::next_stagger() noexcept {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double place = ++lanes_ * kGoldenRatio;
  return place - std::floor(place);
}

}  // namespace gpumeter
