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

std::vector<std::string> DeviceDirectory::forget(const PresenceOf& presence, Nanoseconds step,
                                                 Nanoseconds at_most) {
  std::vector<std::string> forgotten;
  for (auto device = devices_.begin(); device != devices_.end();) {
    KnownDevice& known = device->second;
    const Presence now = presence(known);
    if (now == Presence::missing) known.missing += step;
    if (now == Presence::there) known.missing = Nanoseconds{0};
    const bool old = now == Presence::missing && known.missing >= at_most;
    if (old) forgotten.push_back(device->first);
    if (old) taken_.erase(known.index);
    device = old ? devices_.erase(device) : std::next(device);
  }
  return forgotten;
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
