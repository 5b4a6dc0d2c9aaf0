#include "systemd/device_monitor.hpp"

#include <systemd/sd-device.h>
#include <systemd/sd-event.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace gpumeter::systemd {

// Allocated on the heap, because the callback keeps its address.
struct DeviceMonitor::Impl {
  sd_event* event = nullptr;
  sd_device_monitor* monitor = nullptr;
  bool has_changed = false;

  Impl() = default;
  ~Impl() {
    sd_device_monitor_unref(monitor);
    sd_event_unref(event);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

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
    static_cast<Impl*>(self)->has_changed = true;
    return 0;
  }
};

Result<DeviceMonitor> DeviceMonitor::open(std::span<const char* const> subsystems) {
  auto impl = std::make_unique<Impl>();
  if (const int result = impl->start(subsystems); result < 0) {
    return Error(std::string("sd_device_monitor: ") + std::strerror(-result));
  }
  return DeviceMonitor(std::move(impl));
}

DeviceMonitor::DeviceMonitor(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
DeviceMonitor::DeviceMonitor(DeviceMonitor&&) noexcept = default;
DeviceMonitor& DeviceMonitor::operator=(DeviceMonitor&&) noexcept = default;
DeviceMonitor::~DeviceMonitor() = default;

int DeviceMonitor::descriptor() const noexcept { return sd_event_get_fd(impl_->event); }

bool DeviceMonitor::take() noexcept {
  constexpr std::uint64_t kNoWait = 0;
  while (sd_event_run(impl_->event, kNoWait) > 0) {
  }
  return std::exchange(impl_->has_changed, false);
}

}  // namespace gpumeter::systemd
