#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace gpumeter {

/// The time of the next retry: 1 s after the first failure, then twice as long after each further one, up to
/// `longest`. Times are CLOCK_MONOTONIC. One thread at a time.
class Backoff {
 public:
  explicit Backoff(Nanoseconds longest) noexcept : longest_(longest) {}

  bool is_waiting() const noexcept { return wait_ > Nanoseconds{0}; }
  /// True for the first attempt, and when the wait after the last failure is over.
  bool is_due(Nanoseconds now) const noexcept { return !is_waiting() || now >= at_; }
  void failed(Nanoseconds now) noexcept {
    wait_ = std::min<Nanoseconds>(is_waiting() ? wait_ * 2 : kFirst, longest_);
    at_ = now + wait_;
  }
  void succeeded() noexcept { wait_ = Nanoseconds{0}; }

 private:
  static constexpr Nanoseconds kFirst = std::chrono::seconds(1);

  Nanoseconds longest_;
  Nanoseconds wait_{};
  Nanoseconds at_{};
};

}  // namespace gpumeter
