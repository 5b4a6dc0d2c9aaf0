#pragma once

#include <time.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace gpumeter {

using Nanoseconds = std::chrono::nanoseconds;

/// An interface, so that tests can supply their own time. While the machine sleeps, boottime advances and
/// monotonic does not. Any thread, even one that a hanging driver kept beyond the end of main(): a
/// SystemClock has no destructor to run, so it stays valid as long as its storage.
class Clock {
 public:
  /// CLOCK_MONOTONIC, for cadence and integrals; stops while the machine sleeps.
  virtual Nanoseconds monotonic() const noexcept = 0;
  /// CLOCK_BOOTTIME: like monotonic, but continues while the machine sleeps.
  virtual Nanoseconds boottime() const noexcept = 0;
  /// CLOCK_REALTIME since 1970, only for *_timestamp_seconds.
  virtual Nanoseconds realtime() const noexcept = 0;

 protected:
  ~Clock() = default;
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

/// Durations of the configuration, in whole milliseconds.
using Duration = std::chrono::milliseconds;

/// The format of a duration, for error messages.
inline constexpr std::string_view kDurationForm = "a number with its unit, such as 500ms, 5s or 1m30s";

/// Parses "500ms", "7.3s" or "1h30m": numbers of h, m, s and ms whose sum is a whole number of milliseconds.
/// Returns nullopt for any other text, such as a bare number, and for more than 100 years.
std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// Returns the shortest text that parse_duration() accepts: 90 min is "1h30m", zero is "0s".
std::string duration_text(Duration duration);

}  // namespace gpumeter
