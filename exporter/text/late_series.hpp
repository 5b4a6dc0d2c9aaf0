#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace gpumeter {

/// The time at which a page is rendered.
struct PageTime {
  Nanoseconds monotonic{};
  Nanoseconds realtime{};
};

/// What a page has of a series. `since`: Unix time since which a counter counts, in seconds; 0: unknown.
struct Shown {
  bool is_shown = false;
  double value = 0;
  double since = 0;
};

/// A series that pages omit while it is 0. increase() counts from a counter's first sample on, so pages have
/// the counter's first event as a rise: for a while the value is 0, and `since` is the time of the last page
/// without it. One thread.
class LateSeries {
 public:
  /// Longer than the longest interval of scrapes for which the rules are made (1 m), so that every scraper
  /// gets a 0.
  static constexpr Nanoseconds kZeroFirst = std::chrono::seconds(70);

  Shown counter(double value, const PageTime& now) noexcept;

 private:
  bool was_zero_ = false;     ///< on an earlier page
  bool has_begun_ = false;    ///< it is on the page
  double last_ = 0;           ///< the value of the last page
  Nanoseconds last_page_{};   ///< its CLOCK_REALTIME
  Nanoseconds zero_until_{};  ///< CLOCK_MONOTONIC
  double since_ = 0;
};

}  // namespace gpumeter
