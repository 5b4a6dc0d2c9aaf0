/// The part of Fleet that looks after devices that are already enrolled.
#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "daemon/fleet/fleet.hpp"

namespace gpumeter {
namespace {

// For last_seen and for what a device was missing: after a crash as much is unknown of both.
constexpr auto kSaveEvery = std::chrono::minutes(1);

// Between two looks, a tenth of a second apart. After more the process was stopped, and nobody looked.
constexpr auto kLongestStep = std::chrono::seconds(10);

}  // namespace

void Fleet::tick() {
  restore_if_overdue();
  MutexLock lock(mutex_);
  settle_if_ready();
  for (auto& [name, host] : hosts_) look_at(name, host);
  for (Member& member : members_) look_at(member);
  look_for_returned();
  start_threads();
  retry_discovery();
  forget_old();
  if (std::exchange(up_changed_, false)) publish_up();
  save_if_due();
}

void Fleet::look_at(Member& member) {
  const bool was_up = member.up;
  const bool was_known = member.status.first_pass_over || member.overdue;
  member.status = member.lane->status();
  const bool is_late = member.status.overdue_at && clock_.monotonic() > *member.status.overdue_at;
  member.overdue = is_late || (member.status.at_gate && hosts_.at(member.collector).gate->is_stuck());
  member.up = member.status.state == Lane::State::reading && !member.overdue;
  if (member.overdue) member.lane->hide();
  if (member.overdue && workloads_.book) workloads_.book->hide(member.uuid);
  if (member.up) directory_.find(member.uuid)->last_seen = clock_.realtime();
  const bool is_known = member.status.first_pass_over || member.overdue;
  if (member.up == was_up && is_known == was_known) return;
  up_changed_ = directory_changed_ = true;
  log_change(member, was_up);
}

void Fleet::look_at(const std::string& collector, CollectorHost& host) {
  const bool was_late = std::exchange(host.is_late, host.discoverer->is_late());
  if (was_late == host.is_late) return;
  if (!host.is_late) return log_.info("discovery answers again", {{"collector", collector}});
  log_.error("discovery does not answer; no device is found until its driver call returns",
             {{"collector", collector}});
}

void Fleet::log_change(const Member& member, bool was_up) {
  const KnownDevice& device = *directory_.find(member.uuid);
  const Log::Fields fields = {{"gpu", std::to_string(device.index)},
                              {"uuid", member.uuid},
                              {"vendor", device.info.vendor},
                              {"collector", member.collector},
                              {"why", member.status.trouble}};
  if (member.up) return log_.info("device is read", fields);
  if (member.status.state == Lane::State::released) return log_.info("device released", fields);
  if (member.overdue && member.status.at_gate) {
    return log_.error("device is not read: its driver is full of calls that do not return", fields);
  }
  if (member.overdue) return log_.error("device does not answer, its driver call is left alone", fields);
  log_.error(was_up ? "device lost" : "device cannot be read", fields);
}

// A lost device is looked for after 1 s, 2 s, 4 s ... 60 s.
void Fleet::retry_discovery() {
  const Nanoseconds now = clock_.monotonic();
  if (released_until_) return;
  for (auto& [name, host] : hosts_) {
    const bool lost = std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
      return member.collector == name && member.status.state == Lane::State::lost;
    });
    if (!lost) {
      host.rediscovery.succeeded();
    } else if (host.rediscovery.is_due(now)) {
      if (host.rediscovery.is_waiting()) host.discoverer->request();
      host.rediscovery.failed(now);
    }
  }
}

// Wall clocks jump, and while the daemon did not run nobody looked for the device: only time in which it was
// looked for in vain counts.
void Fleet::forget_old() {
  if (!settled_ || released_until_) return looked_at_.reset();
  const Nanoseconds now = clock_.monotonic();
  const Nanoseconds step = std::min<Nanoseconds>(now - looked_at_.value_or(now), kLongestStep);
  looked_at_ = now;
  const auto presence = [this](const KnownDevice& device)
                            GPUMETER_REQUIRES(mutex_) { return presence_of(device); };
  for (const std::string& uuid : directory_.forget(presence, step, settings_.forget)) {
    const auto member =
        std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.uuid == uuid; });
    if (member != members_.end()) {
      const auto host = hosts_.find(member->collector);
      if (host != hosts_.end()) add_errors(host->second.past_errors[member->index], member->status.errors);
      member->lane->request_stop();
      left_behind_.add(member->collector, member->uuid, member->lane);  // its call may hang
      members_.erase(member);
    }
    log_.info("device forgotten", {{"uuid", uuid}});
    up_changed_ = directory_changed_ = true;
  }
}

// Of a collector that is switched off nobody looks for devices, and they must not keep their indexes for
// good. One whose first discovery still hangs may yet find its devices, and a device that has no lane because
// an old call on it hangs is not missed.
Presence Fleet::presence_of(const KnownDevice& device) const {
  const auto host = hosts_.find(device.collector);
  if (host == hosts_.end()) return Presence::missing;
  const bool hangs = left_behind_.has(device.collector, device.info.uuid);
  if (hangs || !host->second.reported) return Presence::unknown;
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& m) { return m.uuid == device.info.uuid; });
  return member != members_.end() && member->listed ? Presence::there : Presence::missing;
}

// Every device that is known, also one of an earlier run that is missing now: an alert needs its line.
void Fleet::publish_up() {
  for (const auto& [name, host] : hosts_) {
    if (!up_series_.contains(name)) up_series_.emplace(name, store_->attach(name));
  }
  for (const auto& [uuid, device] : directory_.devices()) {
    if (!settled_ || !hosts_.contains(device.collector)) continue;
    const Member* member = find(uuid);
    const bool still_starting = member != nullptr && !member->status.first_pass_over && !member->overdue;
    if (still_starting) continue;
    const Labels labels(device.info, device.index, name_of(settings_.names, device.info), settings_.labels);
    up_series_.at(device.collector).add(catalog::up, labels, member != nullptr && member->up ? 1 : 0);
  }
  for (auto& [name, series] : up_series_) series.commit(clock_.monotonic());
}

void Fleet::save_if_due() {
  const Nanoseconds now = clock_.monotonic();
  const bool due = settled_ && now >= saved_at_.value_or(started_) + kSaveEvery;
  if (!keeper_ || (!due && !directory_changed_)) return;
  keeper_->save(directory_);
  directory_changed_ = false;
  saved_at_ = now;
}

}  // namespace gpumeter
