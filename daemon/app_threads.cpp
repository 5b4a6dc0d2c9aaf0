/// The part of App that starts its other threads, and what they run of it.
#include <algorithm>
#include <utility>

#include "collectors/builtin.hpp"
#include "daemon/app.hpp"

namespace gpumeter {

// Before the lanes: where threads are short, devices wait for theirs, and the daemon has its own.
Result<Done> App::start_threads() {
  self_report_ = std::make_unique<SelfReport>(
      SelfReport::Sources{clock_, log_, *store_, *fleet_, *bus_watcher_, *server_});
  if (Result<Done> started = start_watchdog(); !started) return started;
  if (Result<Done> started = start_upkeep(); !started) return started;
  return bus_watcher_->start();
}

// The watchdog only reads clocks and memory, so that it goes on whatever hangs: it makes no log write, no fsync, no
// name lookup, no file access and no driver call.
Result<Done> App::start_watchdog() {
  constexpr auto kEvery = std::chrono::milliseconds(100);
  return watchdog_.start("watchdog", [this] {
    fleet_->tick();
    return kEvery;
  });
}

// Work of each second that may wait for the system: the daemon's own figures, names of users.
Result<Done> App::start_upkeep() {
  return upkeep_.start("upkeep", [this] {
    keep_up();
    return std::chrono::seconds(1);
  });
}

std::shared_ptr<BusWatcher> App::make_bus_watcher() {
  BusWatcher::Reports reports;
  reports.seen = [fleet = std::weak_ptr<Fleet>(fleet_)](const Bus& bus) {
    if (const auto alive = fleet.lock()) alive->order_by(bus.addresses);
  };
  reports.function = [this](const std::string& address, bool answers) {
    if (answers) return log_.info("a PCI function answers again", {{"pci_address", address}});
    log_.warn("a PCI function does not answer; it counts as it was seen last", {{"pci_address", address}});
  };
  return std::make_shared<BusWatcher>(config_.paths.sysfs, clock_, std::move(reports));
}

// Ready is who has all of the first page; maybe late, since a device that hangs has its deadline.
void App::keep_up() {
  const bool is_first_pass_over = fleet_->first_pass_over();
  workload_info_->tick(clock_.monotonic());
  self_report_->publish();
  if (!is_first_pass_over) return;
  routes_->set_ready();
  is_ready_ = true;
}

std::vector<CollectorState> App::collector_states() const {
  MutexLock lock(mutex_);
  const auto enabled = enabled_collectors(config_);
  std::vector<CollectorState> states;
  for (const CollectorEntry& entry : builtin_collectors()) {
    const bool is_on = std::find(enabled.begin(), enabled.end(), &entry) != enabled.end();
    states.push_back({std::string(entry.name), is_on});
  }
  return states;
}

}  // namespace gpumeter
