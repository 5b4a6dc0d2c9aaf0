#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/abandonable_thread.hpp"
#include "base/mutex.hpp"
#include "collectors/api/collector.hpp"

namespace gpumeter {

/// Finds one collector's devices: its own thread, since opening a driver may hang and must then hurt no
/// other collector. Runs at the start, every minute, and when asked.
class Discoverer : public std::enable_shared_from_this<Discoverer> {
 public:
  /// Called on the discovery thread after each run. The collector is null where it could not be opened;
  /// it is opened anew at the next run.
  using Report = std::function<void(std::shared_ptr<Collector>, Result<Discovery>)>;

  Discoverer(const CollectorEntry& entry, CollectorContext context, Report report);

  /// Starts the thread. Once; again after an Error.
  Result<Done> start();

  /// Runs a discovery soon.
  void request() GPUMETER_EXCLUDES(mutex_);

  /// While paused nothing is discovered, and the collector is closed as soon as nobody else holds it.
  void pause(bool paused) GPUMETER_EXCLUDES(mutex_);

  void request_stop() GPUMETER_EXCLUDES(mutex_);
  /// As Lane::join().
  bool join(Nanoseconds deadline) { return thread_.join(*context_.clock, deadline); }

  bool is_busy() const GPUMETER_EXCLUDES(mutex_);
  /// True while a run has been under way for longer than any discovery should take: its driver hangs.
  bool is_late() const GPUMETER_EXCLUDES(mutex_);

 private:
  void run() noexcept;
  void discover();
  bool is_paused() const GPUMETER_EXCLUDES(mutex_);
  bool wait_for_request() GPUMETER_EXCLUDES(mutex_);
  void set_busy(bool busy) GPUMETER_EXCLUDES(mutex_);

  const CollectorEntry& entry_;
  const CollectorContext context_;
  const Report report_;
  std::shared_ptr<Collector> collector_;  // discovery thread only
  bool is_incomplete_ = false;            // discovery thread only: of the last run

  AbandonableThread thread_;
  mutable Mutex mutex_;
  Condition changed_;
  bool requested_ GPUMETER_GUARDED_BY(mutex_) = false;
  bool paused_ GPUMETER_GUARDED_BY(mutex_) = false;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
  std::optional<Nanoseconds> busy_since_ GPUMETER_GUARDED_BY(mutex_);  // CLOCK_MONOTONIC; while it runs
};

}  // namespace gpumeter
