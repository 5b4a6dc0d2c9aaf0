#include "daemon/fleet/fleet.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {
Fleet::Fleet(std::shared_ptr<Store> store, const Clock& clock, Log& log, DeviceDirectory directory,
             std::optional<std::vector<std::string>> bus, FleetSettings settings, WorkloadSettings workloads,
             std::shared_ptr<StateKeeper> keeper)
    : store_(std::move(store)),
      clock_(clock),
      log_(log),
      started_(clock.monotonic()),
      workloads_(std::move(workloads)),
      keeper_(std::move(keeper)),
      settings_(std::move(settings)),
      directory_(std::move(directory)),
      bus_(std::move(bus)) {}

void Fleet::add(std::vector<Addition> additions) {
  MutexLock lock(mutex_);
  has_collectors_ = true;
  for (Addition& addition : additions) {
    const std::string name(addition.entry->name);
    hosts_.insert_or_assign(name, host_of(std::move(addition)));
  }
  for (auto& [name, host] : hosts_) {
    if (!host.is_looking) start_discovery(name, host);
  }
}

CollectorHost Fleet::host_of(Addition addition) {
  CollectorHost host;
  addition.context.hanging = hanging_;
  host.entry = addition.entry;
  host.gate = std::make_shared<DriverGate>(addition.entry->max_parallel, clock_);
  const std::string name(addition.entry->name);
  const std::weak_ptr<Fleet> fleet = weak_from_this();  // a hung discovery may outlive the fleet
  host.discoverer = std::make_shared<Discoverer>(
      *addition.entry, std::move(addition.context),
      [fleet, name](std::shared_ptr<Collector> opened, const Result<Discovery>& found) {
        if (const auto alive = fleet.lock()) alive->report(name, std::move(opened), found);
      });
  return host;
}

// Whoever lets go of the collector last closes its driver, which may hang: that is to be the discovery
// thread.
void Fleet::remove(const std::string& collector, Nanoseconds deadline) {
  std::vector<Member> members;
  CollectorHost host;
  {
    MutexLock lock(mutex_);
    const auto found = hosts_.find(collector);
    if (found == hosts_.end()) return;
    host = std::move(found->second);
    host.gate->close();
    hosts_.erase(found);
    const auto stays = std::stable_partition(members_.begin(), members_.end(), [&](const Member& member) {
      return member.collector != collector;
    });
    members.assign(std::move_iterator(stays), std::move_iterator(members_.end()));
    members_.erase(stays, members_.end());
    up_series_.erase(collector);
  }
  host.collector.reset();
  if (host.watcher) host.watcher->request_stop();
  host.discoverer->request_stop();
  for (const Member& member : members) member.lane->request_stop();
  LeftBehind hanging;
  if (!host.discoverer->join(deadline)) hanging.add(collector, LeftBehind::kDiscovery, host.discoverer);
  if (host.watcher && !host.watcher->join(deadline))
    hanging.add(collector, LeftBehind::kEvents, host.watcher);
  for (const Member& member : members) {
    if (member.lane->join(deadline)) continue;
    member.lane->hide();
    hanging.add(collector, member.uuid, member.lane);
  }
  MutexLock lock(mutex_);
  left_behind_.add(hanging);
}

void Fleet::rediscover() {
  MutexLock lock(mutex_);
  if (released_until_) return;
  for (auto& [name, host] : hosts_) host.discoverer->request();
}

void Fleet::configure(const FleetSettings& settings) {
  MutexLock lock(mutex_);
  settings_ = settings;
  up_changed_ = true;
  for (const Member& member : members_) {
    const KnownDevice* device = directory_.find(member.uuid);
    member.lane->configure(settings_.intervals, name_of(settings_.names, device->info), settings_.labels);
  }
}

bool Fleet::first_pass_over() const {
  MutexLock lock(mutex_);
  return settled_ && std::all_of(members_.begin(), members_.end(), [](const Member& member) {
           return member.status.first_pass_over || member.overdue;
         });
}

bool Fleet::stop(Nanoseconds deadline) {
  std::vector<std::shared_ptr<Lane>> lanes;
  std::vector<std::shared_ptr<Discoverer>> discoverers;
  std::vector<std::shared_ptr<EventWatcher>> watchers;
  bool all_ended = true;
  {
    MutexLock lock(mutex_);
    all_ended = !left_behind_.has_any();
    for (const Member& member : members_) lanes.push_back(member.lane);
    for (auto& [name, host] : hosts_) {
      host.gate->close();
      host.collector.reset();
      discoverers.push_back(host.discoverer);
      if (host.watcher) watchers.push_back(host.watcher);
    }
    directory_changed_ = true;
    save_if_due();
  }
  for (const auto& watcher : watchers) watcher->request_stop();
  for (const auto& discoverer : discoverers) discoverer->request_stop();
  for (const auto& lane : lanes) lane->request_stop();
  for (const auto& lane : lanes) all_ended = lane->join(deadline) && all_ended;
  for (const auto& discoverer : discoverers) all_ended = discoverer->join(deadline) && all_ended;
  for (const auto& watcher : watchers) all_ended = watcher->join(deadline) && all_ended;
  return all_ended;
}

}  // namespace gpumeter
