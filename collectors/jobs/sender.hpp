#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string_view>

#include "collectors/api/clock.hpp"

namespace gpumeter::jobs {

/// A process by the kernel's word, never by what it says itself. The start time tells a process from
/// another that has its number later (field 22 of /proc/PID/stat, in clock ticks; any number that is the
/// same each time will do).
struct SenderId {
  std::uint32_t uid = 0;
  std::int32_t pid = 0;  ///< 0: unknown, of another pid namespace; negative: a file of MLLOG lines
  std::uint64_t start_time = 0;

  auto operator<=>(const SenderId&) const = default;
};

/// Where a message came from.
struct Sender {
  SenderId id;
  std::string_view user;  ///< the uid's name, or its digits; no other uid's
};

/// Whether the process (or file) is still there. Asked on the model's writer thread; never of pid 0, which
/// counts as gone when it has been silent for as long as runs are kept.
using IsAlive = std::function<bool(const SenderId&)>;

/// An instant on both clocks, read together: durations are taken from the first and do not jump when the
/// machine's time is set, timestamps show the second.
struct Moment {
  Nanoseconds elapsed{};  ///< CLOCK_BOOTTIME
  Nanoseconds unix{};     ///< CLOCK_REALTIME

  /// The same instant, known by its Unix time only.
  Moment at(Nanoseconds unix_time) const noexcept { return {elapsed + (unix_time - unix), unix_time}; }
};

constexpr double seconds_between(const Moment& from, const Moment& to) noexcept {
  return to_seconds(to.elapsed - from.elapsed);
}

}  // namespace gpumeter::jobs
