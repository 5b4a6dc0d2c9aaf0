#pragma once

#include <utility>

namespace gpumeter {

/// What a reader counts by itself over observed time (Reader::integrates), as of the last pass that was
/// observed and as of the pass that is under way. T is copyable and has restart(): its next reading is where
/// counting begins. One thread.
template <class T>
class Settled {
 public:
  Settled() = default;
  explicit Settled(T initial) : settled_(std::move(initial)) {}

  /// For this pass. A change holds only if the pass is observed.
  T& current() noexcept {
    if (!std::exchange(is_current_, true)) current_ = settled_;
    return current_;
  }

  /// The pass has ended. One that was observed without current() is a gap of this count alone.
  void settle(bool is_observed) noexcept {
    const bool was_read = std::exchange(is_current_, false);
    if (!is_observed) return;
    if (was_read) settled_ = current_;
    if (!was_read) settled_.restart();
  }

 private:
  T settled_{};
  T current_{};
  bool is_current_ = false;
};

}  // namespace gpumeter
