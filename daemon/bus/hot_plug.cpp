#include "daemon/bus/hot_plug.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace gpumeter {
namespace {

// The subsystems of GPUs and NPUs: the card on its bus, and the nodes and sensors of its driver. When a
// driver is loaded, the nodes and sensors appear one by one within about a second.
constexpr const char* kSubsystems[] = {"pci", "drm", "hwmon", "accel"};
constexpr auto kQuiet = std::chrono::milliseconds(300);
constexpr auto kAtMost = std::chrono::seconds(3);

}  // namespace

Result<HotPlug> HotPlug::open() {
  auto monitor = systemd::DeviceMonitor::open(kSubsystems);
  if (!monitor) return monitor.error();
  return HotPlug(*std::move(monitor));
}

HotPlug::HotPlug(systemd::DeviceMonitor monitor) noexcept
    : monitor_(std::move(monitor)), debounce_(kQuiet, kAtMost) {}

std::chrono::milliseconds HotPlug::patience(Nanoseconds now,
                                            std::chrono::milliseconds at_most) const noexcept {
  if (!debounce_.due()) return at_most;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*debounce_.due() - now);
  return std::clamp(left, std::chrono::milliseconds(0), at_most);
}

bool HotPlug::look_again(Nanoseconds now) noexcept {
  if (monitor_.take()) debounce_.event(now);
  return debounce_.take(now);
}

}  // namespace gpumeter
