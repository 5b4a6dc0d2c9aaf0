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
#include "base/worker.hpp"
#include "collectors/sources/pci_scan.hpp"
#include "daemon/bus/adapters.hpp"

namespace gpumeter {

/// Scans the PCI bus at the start, every 30 s and on request, on a thread of its own ("bus"), since reading
/// the files of a function may hang in its driver. A function that does not answer hides no other, and counts
/// as it was last seen while the bus lists it. Public methods: any thread; start() and join(): the owner's.
class BusWatcher : public std::enable_shared_from_this<BusWatcher> {
 public:
  /// Called on the bus thread.
  struct Reports {
    std::function<void(const Bus&)> seen;                                    ///< after each look
    std::function<void(const std::string& address, bool answers)> function;  ///< one hangs, or answers again
  };

  /// `sysfs_root`: "/sys". `clock` outlives this object.
  BusWatcher(std::string sysfs_root, const Clock& clock, Reports reports,
             pci::Scan::Read read = pci::read_function);

  /// Starts the thread. Once; again after an Error.
  Result<Done> start();
  /// Scans soon.
  void request() { worker_.wake(); }
  /// While not wanted the bus counts as empty and is not read.
  void want(bool wanted);

  /// As in Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

  /// The result of the last scan; nullopt before the first, and if none has ended for a minute: the scan
  /// hangs, and its previous result is no reading.
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

  // The thread's.
  pci::Scan scan_;
  std::map<pci::Address, pci::Function> known_;  ///< the display adapters, as they answered last
  std::set<std::string> silent_;

  Worker worker_;
  std::atomic<bool> is_wanted_ = true;
  mutable Mutex mutex_;
  std::optional<Bus> bus_ GPUMETER_GUARDED_BY(mutex_);
  Nanoseconds seen_at_ GPUMETER_GUARDED_BY(mutex_);  // CLOCK_MONOTONIC; the start before the first scan
};

}  // namespace gpumeter
