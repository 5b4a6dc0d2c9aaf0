#pragma once

#include <functional>
#include <memory>

#include "base/abandonable_thread.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace gpumeter {

/// A thread, "upkeep", for what has to be done each second and may wait for the system: the daemon's own
/// figures, names of users. Nobody waits for it. start() and join() are the owner's.
class Upkeep : public std::enable_shared_from_this<Upkeep> {
 public:
  /// `each_second` is called on the thread, and outlives it together with all that it touches; a thread that
  /// hangs is the reason to leave the process by _exit().
  Upkeep(const Clock& clock, std::function<void()> each_second)
      : clock_(clock), each_second_(std::move(each_second)) {}

  Result<Done> start();
  /// Calls it now, beside each second. Any thread.
  void request() GPUMETER_EXCLUDES(mutex_);
  void request_stop() GPUMETER_EXCLUDES(mutex_);
  /// As Lane::join().
  bool join(Nanoseconds deadline) { return thread_.join(clock_, deadline); }

 private:
  void run() noexcept;
  bool sleep() GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  const std::function<void()> each_second_;
  AbandonableThread thread_;
  Mutex mutex_;
  Condition changed_;
  bool requested_ GPUMETER_GUARDED_BY(mutex_) = false;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
