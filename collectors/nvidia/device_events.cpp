#include "collectors/nvidia/device_events.hpp"

#include <algorithm>
#include <span>

#include "base/text.hpp"

namespace gpumeter::nvidia {
namespace {

/// The last name stands for all others.
std::size_t place_in(std::span<const std::string_view> names, std::uint64_t xid) noexcept {
  const auto known = std::find_if(names.begin(), names.end() - 1, [&](std::string_view name) {
    return parse_number<std::uint64_t>(name) == xid;
  });
  return static_cast<std::size_t>(known - names.begin());
}

}  // namespace

std::optional<Event> event_of(std::uint64_t type) noexcept {
  const auto* const known = std::ranges::find(kEvents, type, &EventKind::type);
  if (type == kOwnEvent || known == std::end(kEvents)) return std::nullopt;
  return static_cast<Event>(known - std::begin(kEvents));
}

std::uint64_t heard_types() noexcept {
  std::uint64_t types = nvml::kEventXid;
  for (const EventKind& event : kEvents) types |= event.type;
  return types;
}

std::size_t xid_place(std::uint64_t xid) noexcept { return place_in(kXidNames, xid); }

void DeviceEvents::count_xid(std::uint64_t xid, unsigned instance, Nanoseconds realtime) noexcept {
  const std::size_t place = xid_place(xid);
  xids_[place].fetch_add(1);
  last_[place] = to_seconds(realtime);
  if (instance >= kInstances) return;
  instance_xids_[instance][place_in(kInstanceXidNames, xid)].fetch_add(1);
}

void DeviceEvents::forget_instances() noexcept {
  for (auto& counts : instance_xids_) {
    for (std::atomic<std::uint64_t>& count : counts) count = 0;
  }
}

std::uint64_t DeviceEvents::xids_of(unsigned instance, std::size_t place) const noexcept {
  return instance < kInstances ? instance_xids_[instance][place].load() : 0;
}

}  // namespace gpumeter::nvidia
