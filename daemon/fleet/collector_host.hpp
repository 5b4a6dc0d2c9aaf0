#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "daemon/fleet/backoff.hpp"
#include "daemon/fleet/discoverer.hpp"
#include "daemon/fleet/event_watcher.hpp"
#include "daemon/fleet/left_behind.hpp"
#include "daemon/lane/driver_gate.hpp"

namespace gpumeter {

/// The longest wait before the daemon requests a refused thread again: after a limit is lifted, the thread
/// starts within 10 s.
inline constexpr Nanoseconds kLongestThreadWait = std::chrono::seconds(8);

/// One running collector: its discovery thread, its event thread, the gate to its driver, and its health. The
/// fleet that owns the host guards it; the host's threads call the two callbacks.
class CollectorHost {
 public:
  /// `clock` and `log` must outlive this object.
  CollectorHost(const CollectorEntry& entry, CollectorContext context, Discoverer::Report report,
                EventWatcher::Report on_event, const Clock& clock, Log& log);

  const std::string& name() const noexcept { return name_; }
  const std::shared_ptr<DriverGate>& gate() const noexcept { return gate_; }
  /// Returns the collector of the last report; null while it cannot be opened, and while drivers are
  /// released.
  Collector* collector() const noexcept { return collector_.get(); }

  /// Starts the threads that do not run yet. A thread is not started if one with the same purpose hangs in
  /// `left_behind`, or if the kernel refused it a short time ago.
  void start_threads(const LeftBehind& left_behind);

  /// Stores the result of a discovery.
  void report(std::shared_ptr<Collector> opened, const Result<Discovery>& found);
  void say_once(const std::string& note);

  /// Logs when discovery hangs and when it answers again. Requests discovery while a device is lost: soon at
  /// first, then rarely.
  void look(bool has_lost_device);
  void request() { discoverer_->request(); }

  /// Closes the driver until restore(), as soon as no thread is in the driver.
  void release();
  void restore();
  bool is_released() const;

  void request_stop();
  /// Waits until `deadline` (monotonic) for both threads, and adds hanging threads to `hanging`.
  void join(Nanoseconds deadline, LeftBehind& hanging);

  /// Returns the reason why the last discovery failed or has not ended; empty if it succeeded.
  std::string error() const { return is_late_ ? "its discovery does not answer" : error_; }

  /// What the last discovery that succeeded found denied.
  const std::vector<DeniedValues>& denied() const noexcept { return denied_; }

  /// True after the first discovery.
  bool has_reported() const noexcept { return has_reported_; }
  /// True if the last discovery succeeded and the next one can run.
  bool is_up() const noexcept { return is_up_ && is_looking_ && !is_late_; }

  /// Returns the fraction of its interval by which this driver's next lane is shifted. Multiples of the
  /// golden ratio spread evenly for any number of lanes.
  double next_stagger() noexcept;

  std::map<unsigned, ReadErrors> past_errors;  ///< of lanes that have ended, by the GPU's index

 private:
  void start_discovery(const LeftBehind& left_behind);
  void start_events(const LeftBehind& left_behind);

  const std::string name_;
  const Clock& clock_;
  Log& log_;
  const std::shared_ptr<DriverGate> gate_;
  const std::shared_ptr<Discoverer> discoverer_;
  const std::shared_ptr<EventWatcher> watcher_;
  std::shared_ptr<Collector> collector_;
  std::set<std::string> said_;  ///< notes and errors that are already in the log
  std::vector<DeniedValues> denied_;
  std::string error_;  ///< of the last discovery
  bool has_reported_ = false;
  bool is_up_ = false;
  bool is_looking_ = false;   ///< the discovery thread runs
  bool is_watching_ = false;  ///< the event thread runs
  bool is_late_ = false;      ///< the discovery hangs
  bool is_paused_ = false;    ///< between release() and restore()
  unsigned lanes_ = 0;
  Backoff rediscovery_{std::chrono::seconds(60)};
  Backoff discovery_thread_{kLongestThreadWait};
  Backoff event_thread_{kLongestThreadWait};
};

}  // namespace gpumeter
