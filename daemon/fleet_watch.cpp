/// The part of Fleet that looks after devices that are already enrolled.
#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "daemon/fleet.hpp"

namespace gpumeter {
namespace {

constexpr auto kFirstRetry = std::chrono::seconds(1);
constexpr auto kLastRetry = std::chrono::seconds(60);

}  // namespace

void Fleet::tick() {
  restore_if_overdue();
  {
    MutexLock lock(mutex_);
    settle_if_ready();
    for (Member& member : members_) look_at(member);
    retry_discovery();
    forget_old();
    if (std::exchange(up_changed_, false)) publish_up();
  }
  workload_info_.tick(clock_.monotonic(), *registry_);
  save_if_changed();
}

void Fleet::look_at(Member& member) {
  const bool was_up = member.up;
  const bool was_known = member.status.first_pass_over || member.overdue;
  member.status = member.lane->status();
  member.overdue = member.status.overdue_at && clock_.monotonic() > *member.status.overdue_at;
  member.up = member.status.state == Lane::State::reading && !member.overdue;
  if (member.overdue) member.lane->hide();
  if (member.overdue && workloads_.book) workloads_.book->hide(member.uuid);
  if (member.up) directory_.find(member.uuid)->last_seen = clock_.realtime();
  const bool is_known = member.status.first_pass_over || member.overdue;
  if (member.up == was_up && is_known == was_known) return;
  up_changed_ = true;
  log_change(member, was_up);
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
      host.retry_after = Nanoseconds{0};
    } else if (host.retry_after == Nanoseconds{0}) {
      host.retry_after = kFirstRetry;
      host.retry_at = now + host.retry_after;
    } else if (now >= host.retry_at) {
      host.discoverer->request();
      host.retry_after = std::min<Nanoseconds>(host.retry_after * 2, kLastRetry);
      host.retry_at = now + host.retry_after;
    }
  }
}

void Fleet::forget_old() {
  for (const std::string& uuid : directory_.forget(clock_.realtime() - settings_.forget)) {
    const auto member =
        std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.uuid == uuid; });
    if (member != members_.end()) {
      const auto host = hosts_.find(member->collector);
      if (host != hosts_.end()) add_errors(host->second.past_errors[member->index], member->status.errors);
      member->lane->request_stop();
      members_.erase(member);
    }
    log_.info("device forgotten", {{"uuid", uuid}});
    up_changed_ = directory_changed_ = true;
  }
}

// Every device that is known, also one of an earlier run that is missing now: an alert needs its line.
void Fleet::publish_up() {
  std::map<std::string, SeriesSet> sets;
  for (const auto& [name, host] : hosts_) sets[name].collector = name;
  for (const auto& [uuid, device] : directory_.devices()) {
    if (!settled_ || !hosts_.contains(device.collector)) continue;
    const Member* member = find(uuid);
    const bool still_starting = member != nullptr && !member->status.first_pass_over && !member->overdue;
    if (still_starting) continue;
    const LabelBlock labels(device.info, device.index, name_of(settings_.names, device.info),
                            settings_.labels);
    sets[device.collector].add(catalog::up, labels, member != nullptr && member->up ? 1 : 0);
  }
  for (const auto& [name, set] : sets) registry_->publish("up/" + name, set);
}

void Fleet::save_if_changed() {
  DeviceDirectory snapshot("");
  {
    MutexLock lock(mutex_);
    if (!std::exchange(directory_changed_, false)) return;
    snapshot = directory_;
  }
  const Result<Done> saved = snapshot.save();
  MutexLock lock(mutex_);
  if (!saved && !save_failed_) {
    log_.warn("indexes are not kept over a restart", {{"error", saved.error().message()}});
  }
  save_failed_ = !saved;
}

}  // namespace gpumeter
