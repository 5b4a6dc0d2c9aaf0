/// The part of Fleet that takes in what discoveries find, and gives new devices their index and their lane.
#include <algorithm>
#include <utility>

#include "daemon/fleet/fleet.hpp"

namespace gpumeter {
namespace {

// How long the first indexes wait for the bus, and for a collector whose driver does not answer.
constexpr auto kFirstRound = std::chrono::seconds(3);

}  // namespace

void Fleet::report(const std::string& collector, std::shared_ptr<Collector> opened,
                   const Result<Discovery>& found) {
  MutexLock lock(mutex_);
  const auto host = hosts_.find(collector);
  if (host == hosts_.end()) return;  // removed meanwhile
  // A discovery that was under way when the drivers were released has opened its own again.
  if (!released_until_) host->second.collector = std::move(opened);
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

// Most drivers report at the next read that their device is gone. Some leave files or handles that still
// answer; such a device is lost if discovery no longer finds it.
void Fleet::drop_missing(const CollectorHost& host, const Discovery& found) {
  for (Member& member : members_) {
    const auto same = [&](const DeviceInfo& info) { return info.uuid == member.uuid; };
    const bool is_there = std::any_of(found.devices.begin(), found.devices.end(), same);
    if (member.collector == host.entry->name) member.listed = is_there;
    if (member.collector == host.entry->name && !is_there) member.lane->lose("discovery does not find it");
  }
}

void Fleet::say_once(CollectorHost& host, const std::string& note) {
  if (host.said.insert(note).second) log_.warn(note, {{"collector", std::string(host.entry->name)}});
}

void Fleet::order_by(std::vector<std::string> bus) {
  MutexLock lock(mutex_);
  if (!bus_) bus_ = std::move(bus);
  settle_if_ready();
}

// Indexes follow the PCI order of all vendors together, so the first devices wait for all collectors.
void Fleet::settle_if_ready() {
  const auto reported = [](const auto& host) { return host.second.reported; };
  const bool all = bus_ && std::all_of(hosts_.begin(), hosts_.end(), reported);
  if (!has_collectors_ || (!settled_ && !all && clock_.monotonic() < started_ + kFirstRound)) return;
  settled_ = true;
  enroll_pending();
}

void Fleet::enroll_pending() {
  std::vector<Find> finds = std::exchange(pending_, {});
  sort_by_bus(finds);
  unsigned ordinal = 0;
  for (const Find& find : finds) {
    enroll(find, preferred_index(bus_.value_or(std::vector<std::string>()), find.info, ordinal++));
  }
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
  if (member == nullptr) return make_lane(host->second, device);
  const Lane::State state = member->lane->status().state;
  const bool closed = state == Lane::State::lost || state == Lane::State::released;
  if (!released_until_ && (changed || closed)) member->lane->revive(find.info);
}

void Fleet::make_lane(CollectorHost& host, const KnownDevice& device) {
  if (left_behind_.has(device.collector, device.info.uuid)) {
    return say_once(host, device.info.uuid + " is not read until the call that hung returns");
  }
  const DeviceIdentity identity{device.collector, device.index, device.info,
                                name_of(settings_.names, device.info)};
  auto session = std::make_unique<DeviceSession>(host.collector->device(device.info), identity,
                                                 settings_.labels, store_, clock_, workloads_);
  Member member;
  member.uuid = device.info.uuid;
  member.collector = device.collector;
  member.index = device.index;
  member.lane = std::make_shared<Lane>(std::move(session), host.gate, clock_, settings_.intervals,
                                       stagger_of(host.lanes_started++));
  log_.info("device found", {{"gpu", std::to_string(device.index)},
                             {"uuid", device.info.uuid},
                             {"model", device.info.model},
                             {"collector", device.collector}});
  start_lane(members_.emplace_back(std::move(member)));
}

Fleet::Member* Fleet::find(const std::string& uuid) {
  const auto member =
      std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.uuid == uuid; });
  return member == members_.end() ? nullptr : &*member;
}

}  // namespace gpumeter
