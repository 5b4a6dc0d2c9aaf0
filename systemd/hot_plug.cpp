#include "systemd/hot_plug.hpp"

#include <systemd/sd-device.h>
#include <systemd/sd-event.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace gpumeter::systemd {
namespace {

// When a driver is loaded, its nodes and sensors appear one by one within about a second.
constexpr auto kQuiet = std::chrono::milliseconds(300);
constexpr auto kAtMost = std::chrono::seconds(3);

}  // namespace

// Allocated on the heap, because the callback keeps its address.
struct HotPlug::Monitor {
  sd_event* event = nullptr;
  sd_device_monitor* monitor = nullptr;
  bool has_changed = false;

  Monitor() = default;
  ~Monitor() {
    sd_device_monitor_unref(monitor);
    sd_event_unref(event);
  }
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // Returns 0 or a negative errno.
  int start(std::span<const char* const> subsystems) noexcept {
    int result = sd_event_new(&event);
    if (result >= 0) result = sd_device_monitor_new(&monitor);
    for (const char* const subsystem : subsystems) {
      if (result < 0) return result;
      result = sd_device_monitor_filter_add_match_subsystem_devtype(monitor, subsystem, nullptr);
    }
    if (result >= 0) result = sd_device_monitor_attach_event(monitor, event);
    if (result >= 0) result = sd_device_monitor_start(monitor, on_event, this);
    return result;
  }

  static int on_event(sd_device_monitor*, sd_device*, void* self) noexcept {
    static_cast<Monitor*>(self)->has_changed = true;
    return 0;
  }
};

Result<HotPlug> HotPlug::open(std::span<const char* const> subsystems) {
  auto monitor = std::make_unique<Monitor>();
  if (const int result = monitor->start(subsystems); result < 0)
    return Error(std::string("sd_device_monitor: ") + std::strerror(-result));
  return HotPlug(std::move(monitor));
}

HotPlug::HotPlug(std::unique_ptr<Monitor> monitor) noexcept
    : monitor_(std::move(monitor)), debounce_(kQuiet, kAtMost) {}
HotPlug::HotPlug(HotPlug&&) noexcept = default;
HotPlug& HotPlug::operator=(HotPlug&&) noexcept = default;
HotPlug::~HotPlug() = default;

int HotPlug::descriptor() const noexcept { return sd_event_get_fd(monitor_->event); }

std::chrono::milliseconds HotPlug::patience(Nanoseconds now,
                                            std::chrono::milliseconds at_most) const noexcept {
  if (!debounce_.due()) return at_most;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*debounce_.due() - now);
  return std::clamp(left, std::chrono::milliseconds(0), at_most);
}

bool HotPlug::look_again(Nanoseconds now) noexcept {
  constexpr std::uint64_t kNoWait = 0;
  while (sd_event_run(monitor_->event, kNoWait) > 0) {
  }
  if (std::exchange(monitor_->has_changed, false)) debounce_.event(now);
  return debounce_.take(now);
}

}  // namespace gpumeter::systemd
