#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/clock.hpp"
#include "exporter/health/conditions.hpp"

namespace gpumeter::health {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

/// The recent past of one reading, in twelve slots of a twelfth of the window each. A value leaves up to a
/// twelfth of the window early.
class Window {
 public:
  /// Adds the value of `now`, or nothing if it is absent. Returns the mean or the highest value, or the
  /// growth of a counter, in the window until now; absent if the window is empty.
  double add(Over over, Nanoseconds length, double value, Nanoseconds now) noexcept;
  /// The same as of the last add().
  double result(Over over) const noexcept;

 private:
  static constexpr std::size_t kSlots = 12;
  struct Slot {
    float amount = 0;  ///< sum, highest or growth
    std::uint32_t values = 0;
  };

  void advance(std::int64_t to) noexcept;
  double growth(double value) noexcept;

  std::array<Slot, kSlots> slots_{};
  std::int64_t current_ = 0;  ///< number of the slot that holds the present
  double last_ = kAbsent;     ///< of a counter
};

/// Growth of a counter that is still news.
struct OngoingEvent {
  double count;
  Nanoseconds at{};  ///< of the last one (CLOCK_MONOTONIC)
};

/// The last growth of a counter.
class LastEvent {
 public:
  explicit LastEvent(bool from_zero) noexcept : last_(from_zero ? 0 : kAbsent) {}

  /// Returns the growth since the first of these events, or 0 if `keep` has passed since the last one; absent
  /// if the counter never had a value.
  double add(Nanoseconds keep, double value, Nanoseconds now) noexcept;

  /// The events are no news any more.
  void forget() noexcept { at_.reset(); }

  std::optional<OngoingEvent> ongoing() const noexcept {
    return at_ ? std::optional(OngoingEvent{last_ - before_, *at_}) : std::nullopt;
  }
  /// An earlier process saw this growth. Before the first add().
  void resume(const OngoingEvent& earlier) noexcept {
    before_ = -earlier.count;
    at_ = earlier.at;
  }

 private:
  double last_;
  double before_ = 0;  ///< the count before the first of these events
  std::optional<Nanoseconds> at_;
};

}  // namespace gpumeter::health
