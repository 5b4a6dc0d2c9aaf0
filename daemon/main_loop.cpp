#include "daemon/main_loop.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "daemon/reload.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {
namespace {

constexpr auto kReleased = std::chrono::minutes(10);
constexpr auto kProbe = std::chrono::milliseconds(1000);
constexpr auto kStuckWatchdog = std::chrono::seconds(5);

// The interval between two checks of all parts, and the pause after a probe without an answer.
constexpr auto kNap = std::chrono::milliseconds(10'000);
constexpr auto kNextProbe = std::chrono::milliseconds(1000);

}  // namespace

void MainLoop::run() {
  systemd::notify_ready(status_line());
  open_hot_plug();
  const auto interval = systemd::watchdog_interval();
  const auto nap =
      interval ? std::min(std::chrono::duration_cast<std::chrono::milliseconds>(*interval / 2), kNap) : kNap;
  while (true) {
    const bool is_well = ping_systemd();
    parts_.jobs.retry();
    if (hot_plug_ && hot_plug_->look_again(parts_.clock.monotonic())) look_for_devices();
    const std::optional<int> signal = next_signal(is_well ? nap : kNextProbe);
    if (signal == SIGTERM || signal == SIGINT) break;
    if (signal) obey(*signal);
  }
  systemd::notify_stopping();
}

void MainLoop::open_hot_plug() {
  Result<HotPlug> opened = HotPlug::open();
  if (opened) {
    hot_plug_.emplace(*std::move(opened));
  } else {
    parts_.log.info("udev is not available; devices are rediscovered every 60 s",
                    {{"error", opened.error().message()}});
  }
}

std::optional<int> MainLoop::next_signal(std::chrono::milliseconds at_most) {
  if (!hot_plug_) return parts_.signals.wait(at_most);
  const auto patience = hot_plug_->patience(parts_.clock.monotonic(), at_most);
  return parts_.signals.wait(patience, hot_plug_->descriptor());
}

void MainLoop::obey(int signal) {
  if (signal == SIGHUP) reload();
  if (signal == SIGUSR1) release_drivers();
  if (signal == SIGUSR2) parts_.fleet.restore();
}

void MainLoop::reload() {
  const Nanoseconds begun = parts_.clock.monotonic();
  systemd::notify_reloading(std::chrono::duration_cast<std::chrono::microseconds>(begun));
  const std::vector<std::string> problems = parts_.reload.run();
  systemd::notify_ready(status_line());
  // After READY=1, so that the service is running again when `systemctl reload` returns. The runtime folder
  // is in memory, so this write cannot hang.
  const Result<Done> written = write_outcome(runtime_folder(), {getpid(), begun, problems});
  if (!written) {
    parts_.log.debug("the outcome of the reload cannot be written; gpumeter --reload reports no outcome",
                     {{"error", written.error().message()}});
  }
}

void MainLoop::release_drivers() {
  const bool released = parts_.fleet.release(kReleased);
  if (released) return parts_.log.info("drivers are closed until SIGUSR2, for at most 10 minutes");
  parts_.log.error("drivers are not closed: a call is still under way; devices are read again");
}

// Also requests a bus scan, because gpumeter_pci_devices counts cards that leave or join the bus.
void MainLoop::look_for_devices() {
  parts_.fleet.rediscover();
  parts_.bus.request();
}

// systemd restarts a daemon that sends no ping; a hung driver call is no reason for a restart. Returns false
// if the watchdog's thread or a listener does not answer.
bool MainLoop::ping_systemd() {
  systemd::notify_status(status_line());
  if (!systemd::watchdog_interval()) return true;
  if (parts_.clock.monotonic() - parts_.watchdog.last_turn() > kStuckWatchdog) return false;
  if (const Result<Done> answer = parts_.server.probe(kProbe); !answer) {
    parts_.log.error("a listener does not answer", {{"error", answer.error().message()}});
    return false;
  }
  systemd::notify_watchdog();
  return true;
}

std::string MainLoop::status_line() const {
  const std::vector<DeviceStatus> devices = parts_.fleet.devices();
  const auto up = std::count_if(devices.begin(), devices.end(), [](const auto& device) { return device.up; });
  return std::to_string(up) + " of " + std::to_string(devices.size()) + " GPUs are read";
}

}  // namespace gpumeter
