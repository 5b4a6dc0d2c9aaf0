#pragma once

#include <array>
#include <cstdint>

#include "base/clock.hpp"

namespace gpumeter::workloads {

/// The sum over the last minute, accurate to one second. One bucket per second; the oldest is reused.
class LastMinute {
 public:
  /// `now` must not decrease.
  void add(Nanoseconds now, double amount) noexcept {
    turn(now);
    buckets_[place(second_)] += amount;
  }

  double sum(Nanoseconds now) noexcept {
    turn(now);
    double sum = 0;
    for (const double amount : buckets_) sum += amount;
    return sum;
  }

 private:
  static constexpr std::int64_t kSeconds = 60;

  static std::size_t place(std::int64_t second) noexcept {
    return static_cast<std::size_t>(second % kSeconds);
  }

  void turn(Nanoseconds now) noexcept {
    const std::int64_t second = std::chrono::floor<std::chrono::seconds>(now).count();
    if (second - second_ >= kSeconds) buckets_ = {};
    for (std::int64_t past = second_ + 1; past <= second && past < second_ + kSeconds; ++past) {
      buckets_[place(past)] = 0;
    }
    second_ = second;
  }

  std::array<double, kSeconds> buckets_{};
  std::int64_t second_ = 0;
};

}  // namespace gpumeter::workloads
