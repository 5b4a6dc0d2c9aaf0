/// The part of Fleet that tells others how the devices are.
#include <algorithm>

#include "daemon/fleet/fleet.hpp"

namespace gpumeter {
namespace {

constexpr std::array kTimedTiers = {Tier::fast, Tier::normal, Tier::slow};
constexpr const char* kHangs = "does not answer";

}  // namespace

std::vector<DeviceStatus> Fleet::devices() const {
  MutexLock lock(mutex_);
  std::vector<DeviceStatus> devices;
  for (const auto& [uuid, known] : directory_.devices()) {
    if (hosts_.contains(known.collector)) devices.push_back(status_of(known));
  }
  std::sort(devices.begin(), devices.end(),
            [](const DeviceStatus& a, const DeviceStatus& b) { return a.index < b.index; });
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
  status.state = left_behind_.has(known.collector, known.info.uuid) ? kHangs : "missing";
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& m) { return m.uuid == known.info.uuid; });
  if (member == members_.end()) return status;
  status.up = member->up;
  status.state = state_text(*member);
  if (member->status.last_success > Nanoseconds{0}) {
    status.last_success_timestamp_seconds = to_seconds(member->status.last_success);
  }
  return status;
}

std::string Fleet::state_text(const Member& member) {
  if (member.overdue) return member.status.at_gate ? "its driver does not answer" : kHangs;
  if (member.status.state == Lane::State::starting) return "starting";
  if (member.status.state == Lane::State::reading) return "ok";
  if (member.status.state == Lane::State::released) return "released";
  return member.status.trouble.empty() ? "lost" : member.status.trouble;
}

void Fleet::describe(SelfState& self) const {
  MutexLock lock(mutex_);
  for (const auto& [name, host] : hosts_) {
    CollectorHealth health{name, host.up && host.is_looking && !host.is_late};
    health.released = released_until_.has_value();
    health.read_errors = host.past_errors;
    Nanoseconds last_success{0};
    for (const Member& member : members_) {
      if (member.collector != name) continue;
      ++health.devices;
      last_success = std::max(last_success, member.status.last_success);
      add_errors(health.read_errors[member.index], member.status.errors);
      describe_passes(member, self);
    }
    if (last_success > Nanoseconds{0}) health.last_success_timestamp_seconds = to_seconds(last_success);
    self.collectors.push_back(std::move(health));
  }
}

void Fleet::describe_passes(const Member& member, SelfState& self) const {
  const auto known = directory_.devices().find(member.uuid);
  if (!member.up || known == directory_.devices().end()) return;
  for (std::size_t i = 0; i < kTimedTiers.size(); ++i) {
    const std::string tier(to_string(kTimedTiers[i]));
    self.passes.push_back({member.collector, known->second.index, tier, member.status.duration[i]});
  }
}

}  // namespace gpumeter
