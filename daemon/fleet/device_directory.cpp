#include "daemon/fleet/device_directory.hpp"

#include <algorithm>

namespace gpumeter {

KnownDevice& DeviceDirectory::admit(const std::string& collector, const DeviceInfo& info, unsigned preferred,
                                    Nanoseconds now) {
  const auto [found, is_new] = devices_.try_emplace(info.uuid);
  KnownDevice& device = found->second;
  if (is_new) taken_.insert(device.index = free_index(preferred));
  device.collector = collector;
  device.info = info;
  device.last_seen = now;
  return device;
}

std::vector<std::string> DeviceDirectory::missing_for(const PresenceOf& presence, Nanoseconds step,
                                                      Nanoseconds at_most) {
  std::vector<std::string> due;
  for (auto& [uuid, known] : devices_) {
    const Presence now = presence(known);
    if (now == Presence::missing) known.missing += step;
    if (now == Presence::there) known.missing = Nanoseconds{0};
    if (now == Presence::missing && known.missing >= at_most) due.push_back(uuid);
  }
  return due;
}

bool DeviceDirectory::forget(const std::string& uuid) {
  const auto device = devices_.find(uuid);
  if (device == devices_.end()) return false;
  taken_.erase(device->second.index);
  devices_.erase(device);
  return true;
}

KnownDevice* DeviceDirectory::find(const std::string& uuid) {
  const auto device = devices_.find(uuid);
  return device == devices_.end() ? nullptr : &device->second;
}

const KnownDevice* DeviceDirectory::find(const std::string& uuid) const {
  const auto device = devices_.find(uuid);
  return device == devices_.end() ? nullptr : &device->second;
}

unsigned DeviceDirectory::free_index(unsigned preferred) const {
  if (!taken_.contains(preferred)) return preferred;
  if (const unsigned next = *taken_.rbegin() + 1; next <= kHighestIndex) return next;
  unsigned lowest = 0;
  while (taken_.contains(lowest)) ++lowest;
  return lowest;
}

}  // namespace gpumeter
