#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/worker.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/event_source.hpp"
#include "daemon/lane/lane.hpp"

namespace gpumeter {

/// The time of the next retry: 1 s after the first failure, then twice as long after each further one, up to
/// `longest`. Times are CLOCK_MONOTONIC. One thread at a time.
class Backoff {
 public:
  explicit Backoff(Nanoseconds longest) noexcept : longest_(longest) {}

  bool is_waiting() const noexcept { return wait_ > Nanoseconds{0}; }
  /// True for the first attempt, and when the wait after the last failure is over.
  bool is_due(Nanoseconds now) const noexcept { return !is_waiting() || now >= at_; }
  void failed(Nanoseconds now) noexcept {
    wait_ = std::min<Nanoseconds>(is_waiting() ? wait_ * 2 : kFirst, longest_);
    at_ = now + wait_;
  }
  void succeeded() noexcept { wait_ = Nanoseconds{0}; }

 private:
  static constexpr Nanoseconds kFirst = std::chrono::seconds(1);

  Nanoseconds longest_;
  Nanoseconds wait_{};
  Nanoseconds at_{};
};

/// Threads that hung in a driver when they should have ended. Each thread owns its data and frees it at its
/// end. Until then no second thread is started for the same purpose. A device or a collector therefore holds
/// one hung thread at most. That limit holds however often a collector is removed and added, or a device
/// forgotten and found. One thread at a time.
class LeftBehind {
 public:
  /// `purpose`: a device's uuid, or one of the constants below. `owner`: the data that the thread owns; held
  /// weakly.
  void add(const std::string& collector, const std::string& purpose, std::weak_ptr<const void> owner) {
    entries_.push_back({collector, purpose, std::move(owner)});
  }
  void add(const LeftBehind& others) {
    entries_.insert(entries_.end(), others.entries_.begin(), others.entries_.end());
  }
  static constexpr const char* kDiscovery = "discovery";
  static constexpr const char* kEvents = "events";

  /// True while such a thread hangs.
  bool has(const std::string& collector, const std::string& purpose) const;
  bool has_any() const;

  /// Drops the threads that have ended and returns their collectors.
  std::vector<std::string> take_ended();

 private:
  struct Entry {
    std::string collector;
    std::string purpose;
    std::weak_ptr<const void> owner;
  };
  std::vector<Entry> entries_;
};

/// Waits for the events of one collector's driver on a separate thread ("events-NAME"), because the wait
/// blocks in the driver.
class EventWatcher : public std::enable_shared_from_this<EventWatcher> {
 public:
  /// Called on the event thread, at most once a minute for each device and kind of event. The collector
  /// counts every event; the limit keeps a storm out of the log.
  using Report = std::function<void(const DeviceEvent&)>;

  EventWatcher(const Clock& clock, Report on_event)
      : clock_(clock), report_(std::move(on_event)), worker_(clock) {}

  /// Starts the thread. Call it once, and again only after an Error.
  Result<Done> start(const std::string& collector);

  /// Waits for events of this collector from now on; it must be a WatchesEvents. Null: waits for none. The
  /// thread frees the previous collector when the wait under way ends.
  void watch(std::shared_ptr<Collector> collector);

  /// After watch(nullptr): true when the thread holds no collector and is in no driver.
  bool is_idle() const { return worker_.is_idle(); }

  /// See Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

 private:
  Nanoseconds turn();
  void report(const std::vector<DeviceEvent>& events);

  const Clock& clock_;
  const Report report_;

  // Event thread only.
  std::shared_ptr<Collector> watched_;
  std::map<std::string, Nanoseconds> reported_;  ///< time of the last report, by device and kind

  Worker worker_;
  Mailbox<std::shared_ptr<Collector>> wanted_;
};

/// Finds one collector's devices on a separate thread ("find-NAME"), because opening a driver may hang and
/// must not delay other collectors. Runs at the start, every 60 s (5 s while a device is incomplete) and on
/// request.
class Discoverer : public std::enable_shared_from_this<Discoverer> {
 public:
  /// Called on the discovery thread after each run. The collector is null if it cannot be opened; the next
  /// run opens it again.
  using Report = std::function<void(std::shared_ptr<Collector>, Result<Discovery>)>;

  Discoverer(const CollectorEntry& entry, CollectorContext context, Report report);

  /// Starts the thread. Call it once, and again only after an Error.
  Result<Done> start();

  /// Requests a discovery as soon as possible.
  void request() { worker_.wake(); }

  /// While paused, the thread runs no discovery, and closes the collector when it is the collector's last
  /// owner.
  void pause(bool paused);

  /// See Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }
  bool is_idle() const { return worker_.is_idle(); }

  /// True if the discovery under way exceeds its limit: the driver hangs.
  bool is_late() const;

 private:
  Nanoseconds turn() noexcept;
  bool discover();

  const CollectorEntry& entry_;
  const CollectorContext context_;
  const Report report_;

  // Discovery thread only.
  std::shared_ptr<Collector> collector_;
  bool is_paused_ = false;

  Worker worker_;
  Mailbox<bool> pauses_;  ///< true: pause
};

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
