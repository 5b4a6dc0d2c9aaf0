#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/scheduler.hpp"
#include "collectors/sources/pci_scan.hpp"
#include "daemon/bus/adapters.hpp"

namespace gpumeter {

/// Scans the PCI bus at the start, every 30 s and on request. The scan is a job of the scheduler. Reading the
/// files of a function may hang in its driver: a function that does not answer hides no other function. It
/// keeps its last result while the bus lists it. Public methods: any thread; start(): the owner's thread.
class BusWatcher : public std::enable_shared_from_this<BusWatcher> {
 public:
  /// Called in the scan.
  struct Reports {
    std::function<void(const Bus&)> seen;                                    ///< after each scan
    std::function<void(const std::string& address, bool answers)> function;  ///< a function hangs, or answers
                                                                             ///< again
  };

  /// `sysfs_root`: "/sys". `clock` must outlive this object.
  BusWatcher(std::string sysfs_root, const Clock& clock, Reports reports,
             pci::Scan::Read read = pci::read_function);

  /// The scheduler's stop() ends the scans; it must outlive this object's calls.
  void start(Scheduler& scheduler);
  /// Requests a scan as soon as possible.
  void request() { job_.wake(); }
  /// If `wanted` is false, the bus counts as empty and is not read.
  void want(bool wanted);

  /// Returns the result of the last scan; nullopt before the first scan. Also returns nullopt if no scan has
  /// ended for 60 s: the scan hangs, and its previous result is out of date.
  std::optional<Bus> bus() const GPUMETER_EXCLUDES(mutex_);
  bool is_late() const GPUMETER_EXCLUDES(mutex_);

 private:
  Nanoseconds turn();
  bool look();
  std::optional<Bus> scan();
  void report_silent(const std::vector<std::string>& silent);

  const std::string sysfs_root_;
  const Clock& clock_;
  const Reports reports_;

  // Used only by the job.
  pci::Scan scan_;
  std::map<pci::Address, pci::Function> known_;  ///< the display adapters, as of their last answers
  std::set<std::string> silent_;

  Wakeable job_;
  std::atomic<bool> is_wanted_ = true;
  mutable Mutex mutex_;
  std::optional<Bus> bus_ GPUMETER_GUARDED_BY(mutex_);
  Nanoseconds seen_at_ GPUMETER_GUARDED_BY(mutex_);  // CLOCK_MONOTONIC; the start before the first scan
};

}  // namespace gpumeter
