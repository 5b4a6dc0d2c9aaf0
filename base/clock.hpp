#pragma once

#include <time.h>

#include <chrono>

namespace gpumeter {

using Nanoseconds = std::chrono::nanoseconds;

/// An interface, so that tests can supply their own time. While the machine sleeps, boottime advances and
/// monotonic does not. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  /// CLOCK_MONOTONIC, for cadence and integrals; stops while the machine sleeps.
  virtual Nanoseconds monotonic() const noexcept = 0;
  /// CLOCK_BOOTTIME: like monotonic, but continues while the machine sleeps.
  virtual Nanoseconds boottime() const noexcept = 0;
  /// CLOCK_REALTIME since 1970, only for *_timestamp_seconds.
  virtual Nanoseconds realtime() const noexcept = 0;
};

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
