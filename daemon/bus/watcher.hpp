#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/abandonable_thread.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "collectors/sources/pci_scan.hpp"
#include "daemon/bus/adapters.hpp"

namespace gpumeter {

/// Scans the PCI bus at the start, every 30 s and on request, on its own thread, "bus": the files of a
/// function may hang in its driver. A function that does not answer hides no other, and counts as it was seen
/// last while the bus lists it. Public methods: any thread, but for start() and join(), which are the
/// owner's.
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
  /// Looks soon.
  void request() GPUMETER_EXCLUDES(mutex_);
  /// While not wanted the bus counts as empty and is left alone.
  void want(bool wanted) GPUMETER_EXCLUDES(mutex_);

  void request_stop() GPUMETER_EXCLUDES(mutex_);
  /// As Lane::join().
  bool join(Nanoseconds deadline) { return thread_.join(clock_, deadline); }

  /// What the last look saw; nullopt before the first, and while none has ended for a minute: the look hangs,
  /// and what it saw before is no reading.
  std::optional<Bus> bus() const GPUMETER_EXCLUDES(mutex_);
  bool is_late() const GPUMETER_EXCLUDES(mutex_);

 private:
  void run() noexcept;
  bool look();
  std::optional<Bus> scan();
  void report_silent(const std::vector<std::string>& silent);
  bool wait(Nanoseconds pause) GPUMETER_EXCLUDES(mutex_);
  bool is_wanted() const GPUMETER_EXCLUDES(mutex_);

  const std::string sysfs_root_;
  const Clock& clock_;
  const Reports reports_;

  // The thread's.
  pci::Scan scan_;
  std::map<pci::Address, pci::Function> known_;  ///< the display adapters, as they answered last
  std::set<std::string> silent_;

  AbandonableThread thread_;
  mutable Mutex mutex_;
  Condition changed_;
  std::optional<Bus> bus_ GPUMETER_GUARDED_BY(mutex_);
  Nanoseconds seen_at_ GPUMETER_GUARDED_BY(mutex_);  // CLOCK_MONOTONIC; the start before the first look
  bool wanted_ GPUMETER_GUARDED_BY(mutex_) = true;
  bool requested_ GPUMETER_GUARDED_BY(mutex_) = false;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
