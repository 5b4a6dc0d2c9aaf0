#include "base/clock.hpp"

#include <time.h>

namespace gpumeter {
namespace {

Nanoseconds read_clock(clockid_t id) noexcept {
  timespec time{};
  clock_gettime(id, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

}  // namespace

Nanoseconds SystemClock::monotonic() const noexcept { return read_clock(CLOCK_MONOTONIC); }
Nanoseconds SystemClock::boottime() const noexcept { return read_clock(CLOCK_BOOTTIME); }
Nanoseconds SystemClock::realtime() const noexcept { return read_clock(CLOCK_REALTIME); }

}  // namespace gpumeter
