#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace gpumeter::benchmark {

/// The time that the tests of one device have. One thread.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  /// The time of one test if all have `most`: there are at most 19, and their preparation and verification
  /// need the rest.
  static constexpr Clock::duration share_of(Clock::duration most) noexcept { return most / 28; }
  /// `most` is the time of all tests, `slice` that of one.
  Pace(Clock::duration most, Clock::duration slice) : deadline_(Clock::now() + most), slice_(slice) {}

  /// The time of one test.
  Clock::duration slice() const noexcept { return slice_; }
  bool is_over() const noexcept { return Clock::now() >= deadline_; }

 private:
  Clock::time_point deadline_;
  Clock::duration slice_;
};

/// Seconds of one run.
struct Sample {
  double median = 0;
  double deviation = 0;  ///< median absolute deviation
  int runs = 0;
};

/// The longest time of one launch. A process that waits for the device waits for the launch.
inline constexpr double kLongestLaunchSeconds = 0.1;
inline constexpr int kFewestRuns = 3;

/// Calls `once` until the test's time is over, at least kFewestRuns and at most 200 times; the first call is
/// a warm-up. `once` returns its seconds as the device measured them, or nullopt to give up. Returns nullopt
/// if it gave up or the time of all tests is over.
std::optional<Sample> repeat(const Pace& pace, const std::function<std::optional<double>()>& once);

}  // namespace gpumeter::benchmark
