#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.hpp"

namespace gpumeter {

/// Merges a burst of events into one answer. The answer is due when no event has come for `quiet`, and at the
/// latest `at_most` after the first event. Pure arithmetic; one thread.
class Debounce {
 public:
  Debounce(Nanoseconds quiet, Nanoseconds at_most) noexcept : quiet_(quiet), at_most_(at_most) {}

  void event(Nanoseconds now) noexcept {
    if (!due_) latest_ = now + at_most_;
    due_ = std::min(now + quiet_, latest_);
  }

  /// Returns the time of the answer; nullopt if no event is waiting.
  std::optional<Nanoseconds> due() const noexcept { return due_; }

  /// Returns true once, when the answer is due.
  bool take(Nanoseconds now) noexcept {
    if (!due_ || now < *due_) return false;
    due_.reset();
    return true;
  }

 private:
  Nanoseconds quiet_;
  Nanoseconds at_most_;
  Nanoseconds latest_{0};
  std::optional<Nanoseconds> due_;
};

}  // namespace gpumeter
