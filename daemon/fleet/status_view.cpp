#include "daemon/fleet/status_view.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter {
namespace {

constexpr std::array kTimedTiers = {Tier::fast, Tier::normal, Tier::slow};

void add_passes(const Member& member, SelfState& self) {
  for (std::size_t i = 0; i < kTimedTiers.size(); ++i) {
    const std::string tier(to_string(kTimedTiers[i]));
    self.passes.push_back({member.host().name(), member.index(), tier, member.status().duration[i]});
  }
}

}  // namespace

std::vector<DeviceStatus> StatusView::devices() const {
  std::vector<DeviceStatus> devices;
  for (const auto& [uuid, known] : indexes.devices()) {
    if (hosts.contains(known.collector)) devices.push_back(status_of(known));
  }
  std::ranges::sort(devices, {}, &DeviceStatus::index);
  return devices;
}

DeviceStatus StatusView::status_of(const KnownDevice& known) const {
  DeviceStatus status;
  status.index = known.index;
  status.uuid = known.info.uuid;
  status.vendor = known.info.vendor;
  status.model = known.info.model;
  status.pci_address = known.info.pci_address;
  status.collector = known.collector;
  status.driver = known.info.driver;
  status.state = left_behind.has(known.collector, known.info.uuid) ? kHangs : kMissing;
  const Member* member = find(known.info.uuid);
  if (member == nullptr) return status;
  status.up = member->is_up();
  status.state = member->state_text();
  if (const Nanoseconds last = member->status().last_success; last > Nanoseconds{0}) {
    status.last_success_timestamp_seconds = to_seconds(last);
  }
  return status;
}

std::vector<DeviceIdentity> StatusView::read_devices(const FleetSettings& settings) const {
  std::vector<DeviceIdentity> devices;
  for (const auto& [uuid, known] : indexes.devices()) {
    const Member* const member = find(uuid);
    if (member != nullptr && member->is_up())
      devices.push_back(
          {known.collector, known.index, known.info, name_of(settings.devices.names, known.info)});
  }
  std::ranges::sort(devices, {}, &DeviceIdentity::index);
  return devices;
}

std::vector<DeviceIdentity> StatusView::known_devices(const FleetSettings& settings) const {
  std::vector<DeviceIdentity> devices;
  for (const auto& [uuid, known] : indexes.devices()) {
    if (!hosts.contains(known.collector)) continue;
    devices.push_back(
        {known.collector, known.index, known.info, name_of(settings.devices.names, known.info)});
  }
  std::ranges::sort(devices, {}, &DeviceIdentity::index);
  return devices;
}

void StatusView::describe(SelfState& self, bool is_released) const {
  std::map<const CollectorHost*, CollectorHealth> healths;
  for (const auto& [name, host] : hosts) {
    healths[&host] = {name, host.is_up(), is_released, 0, {}, host.past_errors, host.denied()};
  }
  for (const auto& [uuid, member] : members) {
    CollectorHealth& health = healths[&member.host()];
    ++health.devices;
    add_errors(health.read_errors[member.index()], member.status().errors);
    const double last = to_seconds(member.status().last_success);
    auto& last_of_all = health.last_success_timestamp_seconds;
    if (last > 0) last_of_all = std::max(last, last_of_all.value_or(0));
    if (member.is_up()) add_passes(member, self);
  }
  for (const auto& [name, host] : hosts) self.collectors.push_back(std::move(healths[&host]));
  const auto order = [](const PassDuration& pass) {
    return std::pair(std::string_view(pass.collector), pass.gpu);
  };
  std::ranges::stable_sort(self.passes, {}, order);
}

void StatusView::add_up(const FleetSettings& settings, std::map<std::string, SeriesList>& to) const {
  for (const auto& [uuid, device] : indexes.devices()) {
    const Member* member = find(uuid);
    const bool is_starting = member != nullptr && !member->is_known();
    if (is_starting || !hosts.contains(device.collector)) continue;
    const Labels labels(device.info, device.index, name_of(settings.devices.names, device.info),
                        settings.labels);
    to.at(device.collector).add(catalog::up, labels, member != nullptr && member->is_up() ? 1 : 0);
  }
}

const Member* StatusView::find(const std::string& uuid) const {
  const auto member = members.find(uuid);
  return member == members.end() ? nullptr : &member->second;
}

}  // namespace gpumeter
