#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "daemon/fleet/backoff.hpp"
#include "daemon/fleet/discoverer.hpp"
#include "daemon/fleet/event_watcher.hpp"
#include "daemon/fleet/left_behind.hpp"
#include "daemon/lane/driver_gate.hpp"
#include "daemon/log/log.hpp"

namespace gpumeter {

/// A thread that the kernel refused is requested again after this time at the latest: a limit that is lifted
/// shows within 10 s.
inline constexpr Nanoseconds kLongestThreadWait = std::chrono::seconds(8);

/// One running collector: its discovery thread, its event thread, the gate to its driver, and its health.
/// Guarded by the fleet that owns it; the two callbacks come from its threads.
class CollectorHost {
 public:
  /// `clock` and `log` outlive this object.
  CollectorHost(const CollectorEntry& entry, CollectorContext context, Discoverer::Report report,
                EventWatcher::Tell tell, const Clock& clock, Log& log);

  const std::string& name() const noexcept { return name_; }
  const std::shared_ptr<DriverGate>& gate() const noexcept { return gate_; }
  /// Of the last report; null while it cannot be opened, and while drivers are released.
  Collector* collector() const noexcept { return collector_.get(); }

  /// Starts the threads that do not run yet, unless one with the same purpose hangs in `left_behind`, or the
  /// kernel refused one a short time ago.
  void start_threads(const LeftBehind& left_behind);

  /// Takes over the result of a discovery.
  void report(std::shared_ptr<Collector> opened, const Result<Discovery>& found);
  void say_once(const std::string& note);

  /// Logs when discovery hangs and when it answers again. Looks for lost devices: soon at first, then rarely.
  void look(bool has_lost_device);
  void request() { discoverer_->request(); }

  /// Closes the driver, as soon as no thread is in it, until restore().
  void release();
  void restore();
  bool is_released() const;

  void request_stop();
  /// Waits until `deadline` (monotonic) for both threads, and adds those that hang.
  void join(Nanoseconds deadline, LeftBehind& hanging);

  /// Its first discovery is over.
  bool has_reported() const noexcept { return has_reported_; }
  /// Its last discovery succeeded, and the next can come.
  bool is_up() const noexcept { return is_up_ && is_looking_ && !is_late_; }

  /// Fraction of its interval by which the next lane of this driver is shifted: multiples of the golden ratio
  /// spread evenly however many lanes there will be.
  double next_stagger() noexcept;

  std::map<unsigned, ReadErrors> past_errors;  ///< of lanes that are gone, by the GPU's index

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
  std::set<std::string> said_;  ///< notes and errors that are in the log already
  bool has_reported_ = false;
  bool is_up_ = false;
  bool is_looking_ = false;   ///< its discovery thread runs
  bool is_watching_ = false;  ///< its event thread runs
  bool is_late_ = false;      ///< its discovery hangs
  bool is_paused_ = false;    ///< between release() and restore()
  unsigned lanes_ = 0;
  Backoff rediscovery_{std::chrono::seconds(60)};
  Backoff discovery_thread_{kLongestThreadWait};
  Backoff event_thread_{kLongestThreadWait};
};

}  // namespace gpumeter
