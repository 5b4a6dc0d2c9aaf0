#include "collectors/nvidia/device_events.hpp"

#include <algorithm>
#include <iterator>

#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {
namespace {

struct EventBit {
  std::uint64_t type;
  Event event;
};
constexpr EventBit kEventBits[] = {
    {nvml::kEventSingleBitEcc, Event::single_bit_ecc},
    {nvml::kEventDoubleBitEcc, Event::double_bit_ecc},
    {nvml::kEventEccStorm, Event::ecc_storm},
    {nvml::kEventDramRetirement, Event::dram_retirement},
    {nvml::kEventDramRetirementFailure, Event::dram_retirement_failure},
    {nvml::kEventPoisonNonFatal, Event::poison_nonfatal},
    {nvml::kEventPoisonFatal, Event::poison_fatal},
    {nvml::kEventGpuUnavailable, Event::gpu_unavailable},
    {nvml::kEventRecoveryAction, Event::recovery_action},
};

}  // namespace

std::uint64_t type_of(Event event) noexcept {
  const auto known = std::find_if(std::begin(kEventBits), std::end(kEventBits),
                                  [&](const EventBit& bit) { return bit.event == event; });
  return known == std::end(kEventBits) ? kOwnEvent : known->type;
}

std::optional<Event> event_of(std::uint64_t type) noexcept {
  for (const EventBit& bit : kEventBits) {
    if (bit.type == type) return bit.event;
  }
  return std::nullopt;
}

std::uint64_t heard_types() noexcept {
  std::uint64_t types = nvml::kEventXid;
  for (const EventBit& bit : kEventBits) types |= bit.type;
  return types;
}

std::size_t xid_place(std::uint64_t xid) noexcept {
  return static_cast<std::size_t>(std::find(std::begin(kXids), std::end(kXids), xid) - std::begin(kXids));
}

void DeviceEvents::count_xid(std::uint64_t xid, unsigned instance, Nanoseconds realtime) noexcept {
  const std::size_t place = xid_place(xid);
  xids_[place].fetch_add(1);
  last_[place] = to_seconds(realtime);
  if (instance >= kInstances) return;
  const auto* const known = std::find(std::begin(kInstanceXids), std::end(kInstanceXids), xid);
  instance_xids_[instance][static_cast<std::size_t>(known - std::begin(kInstanceXids))].fetch_add(1);
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
