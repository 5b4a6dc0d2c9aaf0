#include "daemon/fleet.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {
namespace {

// How long the first indexes wait for a collector whose driver does not answer.
constexpr auto kFirstRound = std::chrono::seconds(3);

}  // namespace

Fleet::Fleet(std::shared_ptr<Registry> registry, const Clock& clock, Log& log, DeviceDirectory directory,
             std::vector<std::string> bus, FleetSettings settings, WorkloadSettings workloads)
    : registry_(std::move(registry)),
      clock_(clock),
      log_(log),
      bus_(std::move(bus)),
      started_(clock.monotonic()),
      workloads_(std::move(workloads)),
      workload_info_(workloads_),
      settings_(std::move(settings)),
      directory_(std::move(directory)) {}

void Fleet::add(std::vector<Addition> additions) {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<Discoverer>> discoverers;
  for (Addition& addition : additions) {
    const std::string name(addition.entry->name);
    CollectorHost host = host_of(std::move(addition));
    discoverers.push_back(host.discoverer);
    hosts_.insert_or_assign(name, std::move(host));
  }
  for (const auto& discoverer : discoverers) {
    if (const Result<Done> started = discoverer->start(); !started) {
      log_.error("devices are not looked for", {{"error", started.error().message()}});
    }
  }
}

CollectorHost Fleet::host_of(Addition addition) {
  CollectorHost host;
  host.entry = addition.entry;
  host.gate = std::make_shared<DriverGate>(addition.entry->max_parallel);
  const std::string name(addition.entry->name);
  const std::weak_ptr<Fleet> fleet = weak_from_this();  // a hung discovery may outlive the fleet
  host.discoverer = std::make_shared<Discoverer>(
      *addition.entry, std::move(addition.context),
      [fleet, name](std::shared_ptr<Collector> opened, const Result<Discovery>& found) {
        if (const auto alive = fleet.lock()) alive->report(name, std::move(opened), found);
      });
  return host;
}

void Fleet::remove(const std::string& collector, Nanoseconds deadline) {
  std::vector<std::shared_ptr<Lane>> lanes;
  std::shared_ptr<Discoverer> discoverer;
  std::shared_ptr<EventWatcher> watcher;
  {
    MutexLock lock(mutex_);
    const auto host = hosts_.find(collector);
    if (host == hosts_.end()) return;
    discoverer = host->second.discoverer;
    watcher = host->second.watcher;
    host->second.gate->close();
    hosts_.erase(host);
    for (const Member& member : members_) {
      if (member.collector == collector) lanes.push_back(member.lane);
    }
    std::erase_if(members_, [&](const Member& member) { return member.collector == collector; });
    registry_->publish("up/" + collector, {});
  }
  discoverer->request_stop();
  if (watcher) watcher->request_stop();
  for (const auto& lane : lanes) lane->request_stop();
  discoverer->join(deadline);
  if (watcher) watcher->join(deadline);
  for (const auto& lane : lanes) {
    if (!lane->join(deadline)) lane->hide();
  }
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

void Fleet::report(const std::string& collector, std::shared_ptr<Collector> opened,
                   const Result<Discovery>& found) {
  MutexLock lock(mutex_);
  const auto host = hosts_.find(collector);
  if (host == hosts_.end()) return;  // removed meanwhile
  host->second.collector = std::move(opened);
  watch_events(collector, host->second);
  take_report(host->second, found);
  settle_if_ready();
}

void Fleet::take_report(CollectorHost& host, const Result<Discovery>& found) {
  host.reported = true;
  host.up = static_cast<bool>(found);
  if (!found) return say_once(host, found.error().message());
  for (const std::string& note : found->notes) say_once(host, note);
  for (const DeviceInfo& info : found->devices) pending_.push_back({std::string(host.entry->name), info});
  drop_missing(host, *found);
}

// Most drivers tell at the next read that their device is gone. Some leave files or handles that go on
// answering, and then only its absence tells.
void Fleet::drop_missing(const CollectorHost& host, const Discovery& found) {
  for (const Member& member : members_) {
    const auto same = [&](const DeviceInfo& info) { return info.uuid == member.uuid; };
    const bool is_there = std::any_of(found.devices.begin(), found.devices.end(), same);
    if (member.collector == host.entry->name && !is_there) member.lane->lose("discovery does not find it");
  }
}

void Fleet::say_once(CollectorHost& host, const std::string& note) {
  if (host.said.insert(note).second) log_.warn(note, {{"collector", std::string(host.entry->name)}});
}

// Indexes follow the PCI order of all vendors together, so the first devices wait for all collectors.
void Fleet::settle_if_ready() {
  const auto reported = [](const auto& host) { return host.second.reported; };
  const bool all = std::all_of(hosts_.begin(), hosts_.end(), reported);
  if (!settled_ && !all && clock_.monotonic() < started_ + kFirstRound) return;
  settled_ = true;
  enroll_pending();
}

void Fleet::enroll_pending() {
  std::vector<Find> finds = std::exchange(pending_, {});
  sort_by_bus(finds);
  unsigned ordinal = 0;
  for (const Find& find : finds) enroll(find, preferred_index(bus_, find.info, ordinal++));
}

void Fleet::enroll(const Find& find, unsigned preferred) {
  const auto host = hosts_.find(find.collector);
  if (host == hosts_.end() || !host->second.collector) return;
  Member* member = this->find(find.info.uuid);
  if (member != nullptr && member->collector != find.collector) return;  // another collector reads it
  const KnownDevice* old = directory_.find(find.info.uuid);
  const bool changed = old == nullptr || !(old->info == find.info);
  const KnownDevice& device = directory_.admit(find.collector, find.info, preferred, clock_.realtime());
  directory_changed_ = directory_changed_ || changed;
  if (member == nullptr) return start_lane(host->second, device);
  const Lane::State state = member->lane->status().state;
  const bool closed = state == Lane::State::lost || state == Lane::State::released;
  if (!released_until_ && (changed || closed)) member->lane->revive(find.info);
}

void Fleet::start_lane(CollectorHost& host, const KnownDevice& device) {
  const DeviceIdentity identity{device.collector, device.index, device.info,
                                name_of(settings_.names, device.info)};
  auto session = std::make_unique<DeviceSession>(host.collector->device(device.info), identity,
                                                 settings_.labels, registry_, clock_, workloads_);
  const auto lane = std::make_shared<Lane>(std::move(session), host.gate, clock_, settings_.intervals,
                                           stagger_of(host.lanes_started++));
  Member member;
  member.uuid = device.info.uuid;
  member.collector = device.collector;
  member.index = device.index;
  member.lane = lane;
  members_.push_back(std::move(member));
  log_.info("device found", {{"gpu", std::to_string(device.index)},
                             {"uuid", device.info.uuid},
                             {"model", device.info.model},
                             {"collector", device.collector}});
  if (const Result<Done> started = lane->start(); !started) {
    log_.error("device is not read", {{"error", started.error().message()}});
  }
}

Fleet::Member* Fleet::find(const std::string& uuid) {
  const auto member =
      std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.uuid == uuid; });
  return member == members_.end() ? nullptr : &*member;
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
  {
    MutexLock lock(mutex_);
    for (const Member& member : members_) lanes.push_back(member.lane);
    for (auto& [name, host] : hosts_) {
      host.gate->close();
      discoverers.push_back(host.discoverer);
      if (host.watcher) watchers.push_back(host.watcher);
    }
    directory_changed_ = true;
  }
  for (const auto& lane : lanes) lane->request_stop();
  for (const auto& discoverer : discoverers) discoverer->request_stop();
  for (const auto& watcher : watchers) watcher->request_stop();
  bool all_ended = true;
  for (const auto& lane : lanes) all_ended = lane->join(deadline) && all_ended;
  for (const auto& discoverer : discoverers) all_ended = discoverer->join(deadline) && all_ended;
  for (const auto& watcher : watchers) all_ended = watcher->join(deadline) && all_ended;
  save_if_changed();
  return all_ended;
}

}  // namespace gpumeter
