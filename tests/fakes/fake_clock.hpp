#pragma once

#include <atomic>

#include "base/clock.hpp"

namespace gpumeter {

/// Time that a test moves by hand. Any thread.
class FakeClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return Nanoseconds(monotonic_.load()); }
  Nanoseconds boottime() const noexcept override { return monotonic() + Nanoseconds(suspended_.load()); }
  Nanoseconds realtime() const noexcept override { return kEpoch + boottime(); }

  void advance(Nanoseconds time) noexcept { monotonic_ += time.count(); }
  /// The machine sleeps: boottime advances, monotonic does not.
  void suspend(Nanoseconds time) noexcept { suspended_ += time.count(); }

  /// CLOCK_REALTIME at the start of the fake clock: 2026-01-01T00:00:00Z.
  static constexpr Nanoseconds kEpoch = std::chrono::seconds(1767225600);

 private:
  std::atomic<std::int64_t> monotonic_{0};
  std::atomic<std::int64_t> suspended_{0};
};

}  // namespace gpumeter
