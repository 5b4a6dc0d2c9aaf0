#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// The thread that looks after the fleet: it only reads clocks and memory, so it goes on whatever hangs. No
/// log write, no fsync, no look-up of a name, no file and no driver call is made on it.
class Watchdog {
 public:
  /// `tick` runs every 100 ms on the watchdog's thread.
  Watchdog(const Clock& clock, std::function<void()> tick);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// An Error: the kernel gives no thread.
  Result<Done> start();
  void stop() GPUMETER_EXCLUDES(mutex_);

  /// When the last tick ended (CLOCK_MONOTONIC): systemd is told that all is well only while this moves.
  Nanoseconds last_tick() const noexcept { return Nanoseconds(last_tick_.load()); }

 private:
  void run() noexcept;
  bool sleep() GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  const std::function<void()> tick_;
  std::atomic<std::int64_t> last_tick_{0};
  std::thread thread_;
  Mutex mutex_;
  Condition changed_;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
