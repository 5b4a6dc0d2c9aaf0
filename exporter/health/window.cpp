#include "exporter/health/window.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter::health {

double Window::add(Over over, Nanoseconds length, double value, Nanoseconds now) noexcept {
  advance(now.count() / std::max<std::int64_t>(1, length.count() / static_cast<std::int64_t>(kSlots)));
  Slot& slot = slots_[static_cast<std::size_t>(current_) % kSlots];
  if (!std::isnan(value)) {
    const double amount = over == Over::rise ? growth(value) : value;
    const double before = slot.amount;
    slot.amount = static_cast<float>(over == Over::highest && slot.values > 0 ? std::max(before, amount)
                                     : over == Over::highest                  ? amount
                                                                              : before + amount);
    ++slot.values;
  }
  return result(over);
}

void Window::advance(std::int64_t to) noexcept {
  constexpr auto kAll = static_cast<std::int64_t>(kSlots);
  const std::int64_t fresh = std::min(to - current_, kAll);
  for (std::int64_t i = 0; i < fresh; ++i) slots_[static_cast<std::size_t>(to - i) % kSlots] = {};
  current_ = to;
}

// A counter that starts again counts from 0.
double Window::growth(double value) noexcept {
  const double last = std::exchange(last_, value);
  if (std::isnan(last)) return 0;
  return value >= last ? value - last : value;
}

double Window::result(Over over) const noexcept {
  double sum = 0;
  double highest = -std::numeric_limits<double>::infinity();
  double values = 0;
  for (const Slot& slot : slots_) {
    if (slot.values == 0) continue;
    sum += slot.amount;
    highest = std::max(highest, static_cast<double>(slot.amount));
    values += slot.values;
  }
  if (values == 0) return kAbsent;
  if (over == Over::highest) return highest;
  return over == Over::mean ? sum / values : sum;
}

double LastEvent::add(Nanoseconds keep, double value, Nanoseconds now) noexcept {
  if (!std::isnan(value)) {
    const double last = std::exchange(last_, value);
    if (std::isnan(last) && at_) before_ += value;  // of an earlier process, which has counted this value too
    if (value < last) before_ = 0;                  // it starts again: only what it counts now is news
    if (value > last && !at_) before_ = last;
    if (value > last || (value < last && value > 0)) at_ = now;
  }
  if (std::isnan(last_)) return kAbsent;
  if (at_ && now - *at_ >= keep) at_.reset();
  return at_ ? last_ - before_ : 0;
}

}  // namespace gpumeter::health
