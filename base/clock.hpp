#pragma once

#include <time.h>

#include <chrono>

namespace gpumeter {

using Nanoseconds = std::chrono::nanoseconds;

/// Time is a parameter, so that tests can supply their own. While the machine sleeps, boottime runs ahead of
/// monotonic. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  /// CLOCK_MONOTONIC, for cadence and integrals; stands still while the machine sleeps.
  virtual Nanoseconds monotonic() const noexcept = 0;
  /// CLOCK_BOOTTIME: as monotonic, but continues while the machine sleeps.
  virtual Nanoseconds boottime() const noexcept = 0;
  /// CLOCK_REALTIME since 1970, only for *_timestamp_seconds.
  virtual Nanoseconds realtime() const noexcept = 0;
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return read(CLOCK_MONOTONIC); }
  Nanoseconds boottime() const noexcept override { return read(CLOCK_BOOTTIME); }
  Nanoseconds realtime() const noexcept override { return read(CLOCK_REALTIME); }

 private:
  static Nanoseconds read(clockid_t id) noexcept {
    timespec time{};
    clock_gettime(id, &time);
    return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
  }
};

constexpr double to_seconds(Nanoseconds time) noexcept { return std::chrono::duration<double>(time).count(); }

}  // namespace gpumeter
