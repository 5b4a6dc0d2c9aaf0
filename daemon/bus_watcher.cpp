#include "daemon/bus_watcher.hpp"

#include <exception>
#include <utility>

#include "collectors/support/sysfs.hpp"

namespace gpumeter {
namespace {

constexpr auto kEvery = std::chrono::seconds(30);
constexpr auto kAgain = std::chrono::seconds(5);  // where a function was silent, or no thread was to be had
constexpr auto kStale = std::chrono::seconds(60);
constexpr auto kPerFunction = std::chrono::seconds(1);

}  // namespace

BusWatcher::BusWatcher(std::string sysfs_root, const Clock& clock, Reports reports, Read read)
    : folder_(std::move(sysfs_root) + "/bus/pci/devices"),
      clock_(clock),
      reports_(std::move(reports)),
      read_(std::move(read)),
      calls_("pci-function", kPerFunction, clock),
      seen_at_(clock.monotonic()) {}

Result<Done> BusWatcher::start() {
  return thread_.start("bus", [self = shared_from_this()] { self->run(); });
}

void BusWatcher::request() {
  MutexLock lock(mutex_);
  requested_ = true;
  changed_.notify_all();
}

void BusWatcher::want(bool wanted) {
  MutexLock lock(mutex_);
  wanted_ = wanted;
  requested_ = true;
  changed_.notify_all();
}

void BusWatcher::request_stop() {
  MutexLock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
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

void BusWatcher::run() noexcept {
  bool done = false;
  do {
    try {
      done = look();
    } catch (const std::exception&) {  // out of memory: the next look may find some
      done = false;
    }
  } while (wait(done && silent_.empty() ? kEvery : kAgain));
}

bool BusWatcher::look() {
  std::optional<Bus> bus = is_wanted() ? scan() : Bus();
  if (!bus) return false;
  reports_.seen(*bus);
  MutexLock lock(mutex_);
  bus_ = std::move(bus);
  seen_at_ = clock_.monotonic();
  return true;
}

// nullopt: the kernel gives no thread to ask on, so that no function could answer.
std::optional<Bus> BusWatcher::scan() {
  if (!AbandonableThread().start("pci-function", [] {})) return std::nullopt;
  const std::vector<std::string> names = sysfs::list(folder_);
  const auto answers = calls_.ask<std::optional<pci::Function>>(
      names, [read = read_, folder = folder_](const std::string& name) { return read(folder + "/" + name); });
  report_silent(answers.silent);
  std::map<std::string, pci::Function> seen;
  for (const auto& [name, function] : answers.values) {
    if (function) seen.emplace(name, *function);
  }
  for (const std::string& name : answers.silent) {
    if (const auto known = known_.find(name); known != known_.end()) seen.insert(*known);
  }
  known_ = std::move(seen);
  std::map<pci::Address, pci::Function> in_order;
  for (const auto& [name, function] : known_) in_order.emplace(function.address, function);
  Bus bus;
  for (const auto& [address, function] : in_order) {
    if (pci::is_display(function)) bus.add(function);
  }
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

// False: stop.
bool BusWatcher::wait(Nanoseconds pause) {
  const Nanoseconds until = clock_.monotonic() + pause;
  MutexLock lock(mutex_);
  while (!stop_ && !requested_ && clock_.monotonic() < until) {
    changed_.wait_for(mutex_, until - clock_.monotonic());
  }
  requested_ = false;
  return !stop_;
}

bool BusWatcher::is_wanted() const {
  MutexLock lock(mutex_);
  return wanted_;
}

}  // namespace gpumeter
