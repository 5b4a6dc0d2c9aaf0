#pragma once

#include <chrono>

namespace gpumeter {

using Nanoseconds = std::chrono::nanoseconds;

/// Time is a parameter, so that tests can give their own. All three are read together where they are
/// compared: suspend shows as boottime running ahead of monotonic. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  /// CLOCK_MONOTONIC: what cadence and integrals run on; stands still while the machine sleeps.
  virtual Nanoseconds monotonic() const noexcept = 0;
  /// CLOCK_BOOTTIME: as monotonic, and goes on while the machine sleeps.
  virtual Nanoseconds boottime() const noexcept = 0;
  /// CLOCK_REALTIME since 1970: only for *_timestamp_seconds.
  virtual Nanoseconds realtime() const noexcept = 0;
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override;
  Nanoseconds boottime() const noexcept override;
  Nanoseconds realtime() const noexcept override;
};

constexpr double to_seconds(Nanoseconds time) noexcept { return std::chrono::duration<double>(time).count(); }

}  // namespace gpumeter
