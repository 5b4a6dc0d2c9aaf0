#include "daemon/fleet/collector_host.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <string>
#include <utility>

namespace gpumeter {
namespace {

// The length of one wait in the driver; release() and a stop wait up to that long.
constexpr auto kWait = std::chrono::milliseconds(500);
constexpr auto kUntilReportedAgain = std::chrono::minutes(1);

// Drivers have few kinds of events, but may include numbers in them.
constexpr std::size_t kMostReported = 1000;

// Uevents report hot plug at once. This interval finds changes without an event, such as a driver loaded
// late.
constexpr auto kEvery = std::chrono::seconds(60);
// The interval while a device does not report its identity.
constexpr auto kEveryIncomplete = std::chrono::seconds(5);
// The limit of an attach: nvmlInit on a machine with 16 GPUs takes some seconds.
constexpr auto kDeadline = std::chrono::seconds(10);

}  // namespace

bool LeftBehind::has(const std::string& collector, const std::string& purpose) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.collector == collector && entry.purpose == purpose && !entry.owner.expired();
  });
}

bool LeftBehind::has_any() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return !entry.owner.expired(); });
}

std::vector<std::string> LeftBehind::take_ended() {
  std::vector<std::string> collectors;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (!entry.owner.expired()) return false;
    collectors.push_back(entry.collector);
    return true;
  });
  return collectors;
}

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

Discoverer::Discoverer(const CollectorEntry& entry, CollectorContext context, Report report)
    : entry_(entry), context_(std::move(context)), report_(std::move(report)), worker_(*context_.clock) {}

// The thread closes the collector, because closing a driver may hang too.
Result<Done> Discoverer::start() {
  const std::shared_ptr<Discoverer> self = shared_from_this();
  return worker_.start(
      "find-" + std::string(entry_.name), [self] { return self->turn(); },
      [self] { self->collector_.reset(); });
}

void Discoverer::pause(bool paused) {
  pauses_.post(paused, [](bool) { return true; });
  worker_.wake();
}

bool Discoverer::is_late() const { return worker_.is_busy_for(kDeadline); }

Nanoseconds Discoverer::turn() noexcept {
  for (const bool paused : pauses_.take()) is_paused_ = paused;
  try {
    return discover() ? kEvery : kEveryIncomplete;
  } catch (const std::exception& problem) {  // collectors must not throw; an exception affects only its own
                                             // collector
    report_(nullptr, Error(problem.what()));
  }
  return kEvery;
}

// Returns false if a device is incomplete.
bool Discoverer::discover() {
  if (is_paused_) {
    collector_.reset();
    return true;
  }
  if (!collector_) {
    Result<std::unique_ptr<Collector>> opened = entry_.open(context_);
    if (!opened) {
      report_(nullptr, opened.error());
      return true;
    }
    collector_ = *std::move(opened);
  }
  Result<Discovery> found = collector_->discover();
  const bool is_complete = !found || !found->is_incomplete;
  report_(collector_, std::move(found));
  return is_complete;
}

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
