#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.hpp"

namespace gpumeter {

/// One answer to a burst of events: due once they have paused for `quiet`, and `at_most` after the first of
/// them however many come. Pure arithmetic; one thread.
class Debounce {
 public:
  Debounce(Nanoseconds quiet, Nanoseconds at_most) noexcept : quiet_(quiet), at_most_(at_most) {}

  void event(Nanoseconds now) noexcept {
    if (!due_) latest_ = now + at_most_;
    due_ = std::min(now + quiet_, latest_);
  }

  /// When the answer is due; nullopt while there is nothing to answer.
  std::optional<Nanoseconds> due() const noexcept { return due_; }

  /// True once, when the answer is due.
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
