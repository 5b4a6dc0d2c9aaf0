#include "collectors/nvidia/event_listener.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/nvidia/nvml_constants.hpp"

namespace gpumeter::nvidia {
namespace {

// A storm is drained in bites, so that whoever stops the event thread need not wait for its end.
constexpr int kBite = 1000;

struct EventBit {
  std::uint64_t bit;
  Event event;
};
constexpr std::array kEventBits = {
    EventBit{nvml::kEventSingleBitEcc, Event::single_bit_ecc},
    EventBit{nvml::kEventDoubleBitEcc, Event::double_bit_ecc},
    EventBit{nvml::kEventEccStorm, Event::ecc_storm},
    EventBit{nvml::kEventDramRetirement, Event::dram_retirement},
    EventBit{nvml::kEventDramRetirementFailure, Event::dram_retirement_failure},
    EventBit{nvml::kEventPoisonNonFatal, Event::poison_nonfatal},
    EventBit{nvml::kEventPoisonFatal, Event::poison_fatal},
    EventBit{nvml::kEventGpuUnavailable, Event::gpu_unavailable},
    EventBit{nvml::kEventRecoveryAction, Event::recovery_action},
};

constexpr std::uint64_t wanted() noexcept {
  std::uint64_t mask = nvml::kEventXid;
  for (const EventBit& known : kEventBits) mask |= known.bit;
  return mask;
}

unsigned milliseconds(Nanoseconds time) noexcept {
  return static_cast<unsigned>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

}  // namespace

EventListener::~EventListener() {
  if (set_ != nullptr) nvml_.nvmlEventSetFree(set_);
}

void EventListener::listen(nvml::Device device, std::string uuid, std::shared_ptr<DeviceEvents> events) {
  MutexLock lock(mutex_);
  listened_.push_back({device, std::move(uuid), std::move(events), false});
  changed_.notify_all();
}

void EventListener::forget(nvml::Device device) {
  MutexLock lock(mutex_);
  std::erase_if(listened_, [&](const Listened& one) { return one.device == device; });
}

EventListener::Heard EventListener::wait(Nanoseconds at_most, const Clock& clock) {
  Heard heard{nvml::kTimeout, {}};
  if (!register_new()) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, at_most);
    return heard;
  }
  nvml::EventData data{};
  heard.result = nvml_.nvmlEventSetWait_v2(set_, &data, milliseconds(at_most));
  for (int i = 0; heard.result == nvml::kSuccess && i < kBite; ++i) {
    if (std::optional<DeviceEvent> event = take(data, clock)) heard.events.push_back(*std::move(event));
    heard.result = nvml_.nvmlEventSetWait_v2(set_, &data, 0);
  }
  if (heard.result != nvml::kSuccess && heard.result != nvml::kTimeout) start_anew();
  return heard;
}

// False: there is nothing to wait for.
bool EventListener::register_new() {
  if (nvml_.nvmlEventSetCreate == nullptr || nvml_.nvmlDeviceRegisterEvents == nullptr ||
      nvml_.nvmlEventSetWait_v2 == nullptr || nvml_.nvmlEventSetFree == nullptr)
    return false;
  std::vector<nvml::Device> fresh;
  {
    MutexLock lock(mutex_);
    for (Listened& one : listened_) {
      if (!std::exchange(one.is_registered, true)) fresh.push_back(one.device);
    }
    if (listened_.empty()) return false;
  }
  if (set_ == nullptr && nvml_.nvmlEventSetCreate(&set_) != nvml::kSuccess) set_ = nullptr;
  for (nvml::Device device : fresh) {
    std::uint64_t supported = wanted();
    if (nvml_.nvmlDeviceGetSupportedEventTypes != nullptr &&
        nvml_.nvmlDeviceGetSupportedEventTypes(device, &supported) != nvml::kSuccess)
      continue;
    if (set_ != nullptr) nvml_.nvmlDeviceRegisterEvents(device, supported & wanted(), set_);
  }
  return set_ != nullptr;
}

// "On UNKNOWN the set must be freed" (nvml.h at nvmlEventSetWait_v2); a lost GPU spoils it too.
void EventListener::start_anew() {
  nvml_.nvmlEventSetFree(std::exchange(set_, nullptr));
  MutexLock lock(mutex_);
  for (Listened& one : listened_) one.is_registered = false;
  changed_.wait_for(mutex_, std::chrono::milliseconds(100));
}

std::optional<DeviceEvent> EventListener::take(const nvml::EventData& data, const Clock& clock) {
  MutexLock lock(mutex_);
  const auto of = std::find_if(listened_.begin(), listened_.end(),
                               [&](const Listened& one) { return one.device == data.device; });
  if (of == listened_.end()) return std::nullopt;
  if (data.type == nvml::kEventXid) {
    of->events->count_xid(data.data, clock.realtime());
    return DeviceEvent{of->uuid, "xid " + std::to_string(data.data)};
  }
  for (const EventBit& known : kEventBits) {
    if (known.bit != data.type) continue;
    of->events->count(known.event);
    return DeviceEvent{of->uuid, std::string(kEventNames[static_cast<std::size_t>(known.event)])};
  }
  return std::nullopt;
}

}  // namespace gpumeter::nvidia
