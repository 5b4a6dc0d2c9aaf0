#include "daemon/fleet/fleet.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "daemon/self/report.hpp"

namespace gpumeter {
namespace {

constexpr std::array kTimedTiers = {Tier::fast, Tier::normal, Tier::slow};

void add_passes(const Member& member, SelfState& self) {
  for (std::size_t i = 0; i < kTimedTiers.size(); ++i) {
    const std::string tier(to_string(kTimedTiers[i]));
    self.passes.push_back({member.host().name(), member.index(), tier, member.status().duration[i]});
  }
}

// The limit of the first indexes' wait for the bus, and for a collector whose driver does not answer.
constexpr auto kFirstRound = std::chrono::seconds(3);

constexpr auto kCallsUnderWay = std::chrono::seconds(2);
constexpr auto kLook = std::chrono::milliseconds(10);

}  // namespace

void Member::start_if_due() {
  if (is_started_ || !thread_.is_due(clock_.monotonic())) return;
  is_started_ = static_cast<bool>(lane_->start());
  if (!is_started_) thread_.failed(clock_.monotonic());
}

bool Member::look() {
  was_up_ = is_up_;
  const bool was_known = is_known();
  status_ = lane_->status();
  const bool is_late = status_.overdue_at && clock_.monotonic() > *status_.overdue_at;
  is_overdue_ = is_late || (status_.at_gate && host_.gate()->is_stuck());
  is_up_ = status_.state == Lane::State::reading && !is_overdue_;
  if (is_overdue_) lane_->hide();
  return is_up_ != was_up_ || is_known() != was_known;
}

void Member::log_change(const KnownDevice& device, Log& log) const {
  const Log::Fields fields = {{"gpu", std::to_string(index_)},
                              {"uuid", uuid_},
                              {"vendor", device.info.vendor},
                              {"collector", host_.name()},
                              {"why", status_.trouble}};
  if (is_up_) return log.info("device is read", fields);
  if (status_.state == Lane::State::released) return log.info("device released", fields);
  if (is_overdue_ && status_.at_gate) {
    return log.error("device is not read: calls of other devices hang in its driver", fields);
  }
  if (is_overdue_)
    return log.error("device does not answer; it is not read until its driver call returns", fields);
  log.error(was_up_ ? "device lost" : "device cannot be read", fields);
}

std::string Member::state_text() const {
  if (is_overdue_) return status_.at_gate ? "its driver does not answer" : kHangs;
  if (status_.state == Lane::State::starting) return "starting";
  if (status_.state == Lane::State::reading) return "ok";
  if (status_.state == Lane::State::released) return "released";
  return status_.trouble.empty() ? "lost" : status_.trouble;
}

bool Member::is_released() const { return !is_started_ || lane_->status().state == Lane::State::released; }

Fleet::Fleet(std::shared_ptr<Store> store, Machine& machine, const Clock& clock, Log& log,
             IndexKeeper indexes, FleetSettings settings, WorkloadSettings workloads,
             std::shared_ptr<TotalsBook> totals)
    : store_(std::move(store)),
      machine_(machine),
      clock_(clock),
      log_(log),
      started_(clock.monotonic()),
      workloads_(std::move(workloads)),
      totals_(std::move(totals)),
      settings_(std::move(settings)),
      indexes_(std::move(indexes)) {}

void Fleet::add(std::vector<Addition> additions) {
  MutexLock lock(mutex_);
  has_collectors_ = true;
  for (Addition& addition : additions) add(std::move(addition));
  for (auto& [name, host] : hosts_) host.start_threads(left_behind_);
}

// A hung discovery may outlive the fleet, so the callbacks hold it weakly.
void Fleet::add(Addition addition) {
  const std::string name(addition.entry->name);
  const std::weak_ptr<Fleet> fleet = weak_from_this();
  addition.context.hanging = hanging_;
  const auto report = [fleet, name](std::shared_ptr<Collector> opened, const Result<Discovery>& found) {
    if (const auto alive = fleet.lock()) alive->report(name, std::move(opened), found);
  };
  const auto on_event = [fleet](const DeviceEvent& event) {
    if (const auto alive = fleet.lock()) alive->log_event(event);
  };
  hosts_.try_emplace(name, *addition.entry, std::move(addition.context), report, on_event, clock_, log_);
}

void Fleet::order_by(const std::vector<std::string>& bus) {
  MutexLock lock(mutex_);
  indexes_.order_by(bus);
  settle_if_ready();
}

void Fleet::report(const std::string& collector, std::shared_ptr<Collector> opened,
                   const Result<Discovery>& found) {
  MutexLock lock(mutex_);
  const auto host = hosts_.find(collector);
  if (host == hosts_.end()) return;  // removed in the meantime
  host->second.report(std::move(opened), found);
  host->second.start_threads(left_behind_);
  if (found) take_found(host->second, *found);
  settle_if_ready();
}

// Most drivers report at the next read that their device is gone. Other drivers leave files or handles that
// still answer; such a device is lost if discovery no longer finds it.
void Fleet::take_found(const CollectorHost& host, const Discovery& found) {
  std::set<std::string_view> listed;
  for (const DeviceInfo& info : found.devices) {
    listed.insert(info.uuid);
    indexes_.add({host.name(), info});
  }
  for (auto& [uuid, member] : members_) {
    if (&member.host() != &host) continue;
    member.is_listed = listed.contains(uuid);
    if (!member.is_listed) member.lane().lose("discovery no longer finds it");
  }
}

void Fleet::log_event(const DeviceEvent& event) {
  MutexLock lock(mutex_);
  const KnownDevice* device = indexes_.find(event.uuid);
  if (device == nullptr) return;
  log_.warn("the driver reports " + event.kind, {{"gpu", std::to_string(device->index)},
                                                 {"uuid", event.uuid},
                                                 {"vendor", device->info.vendor},
                                                 {"collector", device->collector}});
}

// Indexes follow the PCI order over all vendors, so the first devices wait for all collectors.
void Fleet::settle_if_ready() {
  const auto has_reported = [](const auto& host) { return host.second.has_reported(); };
  const bool have_all = indexes_.is_ordered() && std::ranges::all_of(hosts_, has_reported);
  if (!has_collectors_ || (!is_settled_ && !have_all && clock_.monotonic() < started_ + kFirstRound)) return;
  if (!std::exchange(is_settled_, true)) up_changed_ = true;
  for (const IndexKeeper::Find& find : indexes_.take_found()) enroll(find);
}

void Fleet::enroll(const IndexKeeper::Find& find) {
  const auto host = hosts_.find(find.collector);
  if (host == hosts_.end() || host->second.collector() == nullptr) return;
  const auto member = members_.find(find.info.uuid);
  const bool is_member = member != members_.end();
  if (is_member && &member->second.host() != &host->second) return;  // another collector reads it
  const IndexKeeper::Admission admission = indexes_.admit(find);
  if (!is_member) return make_lane(host->second, admission.device);
  Lane& lane = member->second.lane();
  const Lane::State state = lane.status().state;
  const bool is_closed = state == Lane::State::lost || state == Lane::State::released;
  if (!released_until_ && (admission.is_changed || is_closed)) lane.revive(find.info);
}

void Fleet::make_lane(CollectorHost& host, const KnownDevice& device) {
  const std::string& uuid = device.info.uuid;
  if (left_behind_.has(device.collector, uuid)) {
    return host.say_once(uuid + " is not read until its hung call returns");
  }
  const DeviceIdentity identity{device.collector, device.index, device.info,
                                name_of(settings_.devices.names, device.info)};
  auto session =
      std::make_unique<DeviceSession>(host.collector()->device(device.info), identity, settings_.labels,
                                      store_, clock_, workloads_, totals_->of(uuid));
  auto lane = std::make_shared<Lane>(std::move(session), host.gate(), clock_, settings_.intervals,
                                     host.next_stagger());
  log_.info("device found", {{"gpu", std::to_string(device.index)},
                             {"uuid", uuid},
                             {"model", device.info.model},
                             {"collector", device.collector}});
  const auto member = members_.try_emplace(uuid, device, host, std::move(lane), clock_).first;
  member->second.start_if_due();
}

void Fleet::tick() {
  restore_if_overdue();
  MutexLock lock(mutex_);
  settle_if_ready();
  look_at_members();
  look_for_returned();
  for (auto& [name, host] : hosts_) host.start_threads(left_behind_);
  forget_long_missing();
  const bool is_over = is_first_pass_over();
  if (std::exchange(was_over_, is_over) != is_over) up_changed_ = true;
  if (std::exchange(up_changed_, false)) publish_up();
  indexes_.save_if_due(is_settled_);
}

void Fleet::look_at_members() {
  std::set<const CollectorHost*> have_lost;
  for (auto& [uuid, member] : members_) {
    const bool is_changed = member.look();
    if (member.is_overdue() && workloads_.book) workloads_.book->hide(uuid);
    if (member.is_up()) indexes_.seen(uuid);
    if (member.status().state == Lane::State::lost) have_lost.insert(&member.host());
    if (is_changed) {
      up_changed_ = true;
      indexes_.changed();
      member.log_change(*indexes_.find(uuid), log_);
    }
    member.start_if_due();
  }
  for (auto& [name, host] : hosts_) host.look(have_lost.contains(&host));
}

// Requests discovery: a device whose call hung during a reload can be read again after the call has returned.
void Fleet::look_for_returned() {
  for (const std::string& collector : left_behind_.take_ended()) {
    const auto host = hosts_.find(collector);
    if (host != hosts_.end() && !released_until_) host->second.request();
  }
}

// By default a missing device is known until a person calls forget().
void Fleet::forget_long_missing() {
  if (!settings_.devices.forget || !is_settled_ || released_until_) return indexes_.pause_counting();
  const auto presence = [this](const KnownDevice& device)
                            GPUMETER_REQUIRES(mutex_) { return presence_of(device); };
  for (const std::string& uuid : indexes_.missing_for(presence, *settings_.devices.forget)) drop(uuid);
}

Result<Done> Fleet::forget(const std::string& uuid) {
  MutexLock lock(mutex_);
  const KnownDevice* device = indexes_.find(uuid);
  if (device == nullptr) return Error(uuid + " is not a known device; missing are " + missing_devices());
  if (released_until_) return Error("the drivers are closed (SIGUSR1); open them again by SIGUSR2");
  const Presence presence = presence_of(*device);
  if (presence == Presence::there) return Error(uuid + " is still there; discovery would find it again");
  if (presence == Presence::unknown) {
    return Error("whether " + uuid + " is still there is not known: its driver does not answer");
  }
  drop(uuid);
  return Done{};
}

std::string Fleet::missing_devices() const {
  std::string text;
  for (const auto& [uuid, device] : indexes_.devices()) {
    if (presence_of(device) == Presence::missing) text += (text.empty() ? "" : ", ") + uuid;
  }
  return text.empty() ? "none" : text;
}

void Fleet::drop(const std::string& uuid) {
  if (const auto member = members_.find(uuid); member != members_.end()) end_lane(member);
  indexes_.forget(uuid);
  totals_->forget(uuid);
  log_.info("device forgotten", {{"uuid", uuid}});
  up_changed_ = true;
}

void Fleet::end_lane(Members::iterator member) {
  const Member& gone = member->second;
  add_errors(gone.host().past_errors[gone.index()], gone.status().errors);
  gone.lane().request_stop();
  left_behind_.add(gone.host().name(), gone.uuid(), gone.shared_lane());  // its call may hang
  members_.erase(member);
}

// Devices of a disabled collector count as missing, so that they do not keep their indexes for ever. A
// collector whose first discovery hangs may still find its devices. A device without a lane because an old
// call on it hangs is not missing.
Presence Fleet::presence_of(const KnownDevice& device) const {
  const auto host = hosts_.find(device.collector);
  if (host == hosts_.end()) return Presence::missing;
  const bool hangs = left_behind_.has(device.collector, device.info.uuid);
  if (hangs || !host->second.has_reported()) return Presence::unknown;
  const Member* const member = member_of(device.info.uuid);
  return member != nullptr && member->is_listed ? Presence::there : Presence::missing;
}

// Missing devices of an earlier run have gpu_up too, because alerts need their series. Devices that are still
// starting have none.
void Fleet::publish_up() {
  if (!is_settled_) return;
  for (const auto& [name, host] : hosts_) {
    if (!up_series_.contains(name)) up_series_.emplace(name, store_->attach(name));
  }
  for (const auto& [uuid, device] : indexes_.devices()) {
    const Member* const member = member_of(uuid);
    const bool is_starting = member != nullptr && !member->is_known();
    if (is_starting || !hosts_.contains(device.collector)) continue;
    const Labels labels(device.info, device.index, name_of(settings_.devices.names, device.info),
                        settings_.labels);
    up_series_.at(device.collector).add(catalog::up, labels, member != nullptr && member->is_up() ? 1 : 0);
  }
  for (auto& [name, series] : up_series_) series.commit(clock_.monotonic());
  machine_.read_devices.publish(identities(Which::read));
  if (was_over_) machine_.known_devices.publish(identities(Which::known));
}

void Fleet::rediscover() {
  MutexLock lock(mutex_);
  if (released_until_) return;
  for (auto& [name, host] : hosts_) host.request();
}

void Fleet::configure(const FleetSettings& settings) {
  MutexLock lock(mutex_);
  settings_ = settings;
  up_changed_ = true;
  for (auto& [uuid, member] : members_) {
    const std::string name = name_of(settings_.devices.names, indexes_.find(uuid)->info);
    member.lane().configure(settings_.intervals, name, settings_.labels);
  }
}

bool Fleet::release(Nanoseconds at_most) {
  {
    MutexLock lock(mutex_);
    released_until_ = clock_.monotonic() + at_most;
    for (auto& [name, host] : hosts_) host.release();
    for (auto& [uuid, member] : members_) member.lane().release();
  }
  const Nanoseconds deadline = clock_.monotonic() + kCallsUnderWay;
  while (clock_.monotonic() < deadline) {
    {
      MutexLock lock(mutex_);
      if (all_released()) return true;
    }
    std::this_thread::sleep_for(kLook);
  }
  restore();
  return false;
}

// A thread that was left behind keeps its driver open.
bool Fleet::all_released() const {
  const auto is_released = [](const auto& entry) { return entry.second.is_released(); };
  return !left_behind_.has_any() && std::ranges::all_of(members_, is_released) &&
         std::ranges::all_of(hosts_, is_released);
}

void Fleet::restore_if_overdue() {
  {
    MutexLock lock(mutex_);
    if (!released_until_ || clock_.monotonic() < *released_until_) return;
  }
  log_.warn("SIGUSR2 did not come in time; the drivers are opened again");
  restore();
}

// Discovery finds the devices again and revives their lanes.
void Fleet::restore() {
  MutexLock lock(mutex_);
  if (!released_until_) return;
  released_until_.reset();
  for (auto& [name, host] : hosts_) host.restore();
}

bool Fleet::first_pass_over() const {
  MutexLock lock(mutex_);
  return is_first_pass_over();
}

bool Fleet::is_first_pass_over() const {
  return is_settled_ &&
         std::ranges::all_of(members_, [](const auto& entry) { return entry.second.is_known(); });
}

const Member* Fleet::member_of(const std::string& uuid) const {
  const auto member = members_.find(uuid);
  return member == members_.end() ? nullptr : &member->second;
}

std::vector<DeviceStatus> Fleet::devices() const {
  MutexLock lock(mutex_);
  std::vector<DeviceStatus> devices;
  for (const auto& [uuid, known] : indexes_.devices()) {
    if (hosts_.contains(known.collector)) devices.push_back(status_of(known));
  }
  std::ranges::sort(devices, {}, &DeviceStatus::index);
  return devices;
}

DeviceStatus Fleet::status_of(const KnownDevice& known) const {
  DeviceStatus status;
  status.index = known.index;
  status.uuid = known.info.uuid;
  status.vendor = known.info.vendor;
  status.model = known.info.model;
  status.pci_address = known.info.pci_address;
  status.collector = known.collector;
  status.driver = known.info.driver;
  status.state = left_behind_.has(known.collector, known.info.uuid) ? kHangs : kMissing;
  const Member* member = member_of(known.info.uuid);
  if (member == nullptr) return status;
  status.up = member->is_up();
  status.state = member->state_text();
  if (const Nanoseconds last = member->status().last_success; last > Nanoseconds{0}) {
    status.last_success_timestamp_seconds = to_seconds(last);
  }
  return status;
}

std::vector<DeviceIdentity> Fleet::identities(Which which) const {
  std::vector<DeviceIdentity> devices;
  for (const auto& [uuid, known] : indexes_.devices()) {
    const Member* const member = member_of(uuid);
    const bool is_read = member != nullptr && member->is_up();
    if (which == Which::read ? !is_read : !hosts_.contains(known.collector)) continue;
    devices.push_back(
        {known.collector, known.index, known.info, name_of(settings_.devices.names, known.info)});
  }
  std::ranges::sort(devices, {}, &DeviceIdentity::index);
  return devices;
}

void Fleet::describe(SelfState& self) const {
  MutexLock lock(mutex_);
  std::map<const CollectorHost*, CollectorHealth> healths;
  for (const auto& [name, host] : hosts_) {
    healths[&host] = {name,         host.is_up(), released_until_.has_value(), 0, {}, host.past_errors,
                      host.denied()};
  }
  for (const auto& [uuid, member] : members_) {
    CollectorHealth& health = healths[&member.host()];
    ++health.devices;
    add_errors(health.read_errors[member.index()], member.status().errors);
    const double last = to_seconds(member.status().last_success);
    auto& last_of_all = health.last_success_timestamp_seconds;
    if (last > 0) last_of_all = std::max(last, last_of_all.value_or(0));
    if (member.is_up()) add_passes(member, self);
  }
  for (const auto& [name, host] : hosts_) self.collectors.push_back(std::move(healths[&host]));
  const auto order = [](const PassDuration& pass) {
    return std::pair(std::string_view(pass.collector), pass.gpu);
  };
  std::ranges::stable_sort(self.passes, {}, order);
}

std::map<std::string, std::string> Fleet::collector_errors() const {
  MutexLock lock(mutex_);
  std::map<std::string, std::string> errors;
  for (const auto& [name, host] : hosts_) errors.emplace(name, host.error());
  return errors;
}

void Fleet::remove(const std::string& collector, Nanoseconds deadline) {
  Hosts hosts;
  Members members;
  {
    MutexLock lock(mutex_);
    const auto host = hosts_.find(collector);
    if (host == hosts_.end()) return;
    for (auto member = members_.begin(); member != members_.end();) {
      const auto next = std::next(member);
      if (&member->second.host() == &host->second) members.insert(members_.extract(member));
      member = next;
    }
    hosts.insert(hosts_.extract(host));
    up_series_.erase(collector);
  }
  end(hosts, members, deadline);
}

bool Fleet::stop(Nanoseconds deadline) {
  Hosts hosts;
  Members members;
  {
    MutexLock lock(mutex_);
    hosts.swap(hosts_);
    members.swap(members_);
    indexes_.changed();
    indexes_.save_if_due(is_settled_);
  }
  end(hosts, members, deadline);
  MutexLock lock(mutex_);
  return !left_behind_.has_any();
}

// The thread that releases a collector last closes its driver, which may hang: only discovery threads may do
// so.
void Fleet::end(Hosts& hosts, Members& members, Nanoseconds deadline) {
  LeftBehind hanging;
  for (auto& [name, host] : hosts) host.request_stop();
  for (auto& [uuid, member] : members) member.lane().request_stop();
  for (auto& [uuid, member] : members) {
    if (member.lane().join(deadline)) continue;
    member.lane().hide();
    hanging.add(member.host().name(), uuid, member.shared_lane());
  }
  for (auto& [name, host] : hosts) host.join(deadline, hanging);
  MutexLock lock(mutex_);
  left_behind_.add(hanging);
}

}  // namespace gpumeter
