#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/health/judge.hpp"

namespace gpumeter::health {

/// The recent past of one reading, in twelve slots of a twelfth of the window each. A value leaves up to a
/// twelfth of the window early.
class Window {
 public:
  static constexpr std::size_t kSlots = 12;

  /// Adds the value of `now`, or nothing if it is absent. Returns the mean or the highest value, or the
  /// growth of a counter, in the window until now; absent if the window is empty.
  double add(Over over, Nanoseconds length, double value, Nanoseconds now) noexcept {
    advance(now / slot_of(length));
    Slot& slot = slots_[static_cast<std::size_t>(current_) % kSlots];
    if (!std::isnan(value)) {
      const double amount = over == Over::rise ? growth(value) : value;
      const double before = slot.amount;
      slot.amount = over == Over::highest && slot.values > 0 ? std::max(before, amount)
                    : over == Over::highest                  ? amount
                                                             : before + amount;
      ++slot.values;
    }
    return result(over);
  }

  /// For another process. Of a counter; nothing if it has not counted.
  std::optional<OngoingEvent> kept(Nanoseconds length) const {
    if (!(last_ > 0)) return std::nullopt;
    OngoingEvent event{last_, current_ * slot_of(length)};
    for (const Slot& slot : slots_) event.growth.push_back(slot.amount);
    return event;
  }
  /// Before the first add().
  void resume(const OngoingEvent& earlier, Nanoseconds length) noexcept {
    begin_at(earlier.count);
    current_ = earlier.at / slot_of(length);
    for (std::size_t i = 0; i < std::min(kSlots, earlier.growth.size()); ++i)
      slots_[i] = {earlier.growth[i], 1};
  }

  /// The counter had this value before the first add(), unless an earlier process knows better.
  void begin_at(double value) noexcept {
    if (std::isnan(last_)) last_ = value;
  }

  /// The same as of the last add().
  double result(Over over) const noexcept {
    double sum = 0;
    double highest = -std::numeric_limits<double>::infinity();
    double values = 0;
    for (const Slot& slot : slots_) {
      if (slot.values == 0) continue;
      sum += slot.amount;
      highest = std::max(highest, slot.amount);
      values += slot.values;
    }
    if (values == 0) return kAbsent;
    if (over == Over::highest) return highest;
    return over == Over::mean ? sum / values : sum;
  }

 private:
  struct Slot {
    double amount = 0;  ///< sum, highest or growth
    std::uint32_t values = 0;
  };

  static Nanoseconds slot_of(Nanoseconds length) noexcept {
    return std::max(Nanoseconds(1), length / static_cast<std::int64_t>(kSlots));
  }

  void advance(std::int64_t to) noexcept {
    const std::int64_t fresh = std::min(to - current_, static_cast<std::int64_t>(kSlots));
    for (std::int64_t i = 0; i < fresh; ++i) slots_[static_cast<std::size_t>(to - i) % kSlots] = {};
    current_ = to;
  }

  // A counter that starts again counts from 0.
  double growth(double value) noexcept {
    const double last = std::exchange(last_, value);
    if (std::isnan(last)) return 0;
    return value >= last ? value - last : value;
  }

  std::array<Slot, kSlots> slots_{};
  std::int64_t current_ = 0;  ///< number of the slot that holds the present
  double last_ = kAbsent;     ///< of a counter
};

/// The last growth of a counter.
class LastEvent {
 public:
  explicit LastEvent(bool from_zero) noexcept : last_(from_zero ? 0 : kAbsent) {}

  /// Returns the growth since the first of these events, or 0 if `keep` has passed since the last one; absent
  /// if the counter never had a value.
  double add(Nanoseconds keep, double value, Nanoseconds now) noexcept {
    if (!std::isnan(value)) {
      const double last = std::exchange(last_, value);
      if (std::isnan(last) && at_)
        before_ += value;             // of an earlier process, which has counted this value too
      if (value < last) before_ = 0;  // it starts again: only what it counts now is news
      if (value > last && !at_) before_ = last;
      if (value > last || (value < last && value > 0)) at_ = now;
    }
    if (std::isnan(last_)) return kAbsent;
    if (at_ && now - *at_ >= keep) at_.reset();
    return at_ ? last_ - before_ : 0;
  }

  /// The counter had this value before the first add(), unless that is known.
  void begin_at(double value) noexcept {
    if (std::isnan(last_) && !at_) last_ = value;
  }

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
