#include "daemon/bus/watcher.hpp"

#include <utility>

namespace gpumeter {
namespace {

constexpr auto kEvery = std::chrono::seconds(30);
constexpr auto kAgain =
    std::chrono::seconds(5);  // after a function was silent, or the kernel refused a thread
constexpr auto kStale = std::chrono::seconds(60);

}  // namespace

BusWatcher::BusWatcher(std::string sysfs_root, const Clock& clock, Reports reports, pci::Scan::Read read)
    : sysfs_root_(std::move(sysfs_root)),
      clock_(clock),
      reports_(std::move(reports)),
      scan_("pci-function", clock, std::move(read)),
      seen_at_(clock.monotonic()) {}

void BusWatcher::start(Scheduler& scheduler) {
  job_.add_to(scheduler, {"bus", kStale, [self = shared_from_this()] { return self->turn(); }});
}

void BusWatcher::want(bool wanted) {
  is_wanted_ = wanted;
  job_.wake();
}

std::optional<Bus> BusWatcher::bus() const {
  if (is_late()) return std::nullopt;
  MutexLock lock(mutex_);
  return bus_;
}

bool BusWatcher::is_late() const {
  MutexLock lock(mutex_);
  return clock_.monotonic() > seen_at_ + kStale;
}

Nanoseconds BusWatcher::turn() { return look() && silent_.empty() ? kEvery : kAgain; }

bool BusWatcher::look() {
  std::optional<Bus> bus = is_wanted_ ? scan() : Bus();
  if (!bus) return false;
  reports_.seen(*bus);
  MutexLock lock(mutex_);
  bus_ = std::move(bus);
  seen_at_ = clock_.monotonic();
  return true;
}

// Returns nullopt if the kernel refused a thread.
std::optional<Bus> BusWatcher::scan() {
  const pci::Scan::Found found = scan_.adapters(sysfs_root_);
  if (!found.is_whole) return std::nullopt;
  report_silent(found.silent);
  std::map<pci::Address, pci::Function> seen;
  for (const pci::Function& adapter : found.adapters) seen.emplace(adapter.address, adapter);
  for (const std::string& name : found.silent) {
    const std::optional<pci::Address> address = pci::parse_address(name);
    if (!address) continue;
    if (const auto known = known_.find(*address); known != known_.end()) seen.insert(*known);
  }
  known_ = std::move(seen);
  Bus bus;
  if (!known_.empty()) bus.host = look_at_host(sysfs_root_);
  for (const auto& [address, adapter] : known_) bus.add(adapter);
  return bus;
}

void BusWatcher::report_silent(const std::vector<std::string>& silent) {
  const std::set<std::string> now(silent.begin(), silent.end());
  for (const std::string& name : now) {
    if (!silent_.contains(name)) reports_.function(name, false);
  }
  for (const std::string& name : silent_) {
    if (!now.contains(name)) reports_.function(name, true);
  }
  silent_ = now;
}

}  // namespace gpumeter
