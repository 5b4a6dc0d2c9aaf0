#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "collectors/api/clock.hpp"
#include "collectors/api/mutex.hpp"

namespace gpumeter {

/// The thread that looks after the fleet: it only reads clocks and memory, so it goes on whatever hangs.
class Watchdog {
 public:
  /// `tick` runs every 100 ms, `each_second` after every tenth; both on the watchdog's thread.
  Watchdog(const Clock& clock, std::function<void()> tick, std::function<void()> each_second);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void start();
  void stop() GPUMETER_EXCLUDES(mutex_);

  /// When the last tick ended (CLOCK_MONOTONIC): systemd is told that all is well only while this moves.
  Nanoseconds last_tick() const noexcept { return Nanoseconds(last_tick_.load()); }

 private:
  void run() noexcept;
  bool sleep() GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  const std::function<void()> tick_;
  const std::function<void()> each_second_;
  std::atomic<std::int64_t> last_tick_{0};
  std::thread thread_;
  Mutex mutex_;
  Condition changed_;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
