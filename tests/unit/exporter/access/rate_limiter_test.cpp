#include "exporter/access/rate_limiter.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

class FakeClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return now; }
  Nanoseconds boottime() const noexcept override { return now; }
  Nanoseconds realtime() const noexcept override { return now; }
  Nanoseconds now{std::chrono::hours(1)};
};

/// How many of `asked` requests are admitted.
int admitted(RateLimiter& limiter, int asked) {
  int count = 0;
  for (int i = 0; i < asked; ++i) count += limiter.admit() ? 1 : 0;
  return count;
}

TEST(RateLimiter, IsABucketThatStartsFull) {
  FakeClock clock;
  RateLimiter limiter(clock, {std::chrono::milliseconds(500), 3});
  EXPECT_EQ(admitted(limiter, 10), 3);
  clock.now += std::chrono::milliseconds(499);
  EXPECT_EQ(admitted(limiter, 10), 0);
  clock.now += std::chrono::milliseconds(2);
  EXPECT_EQ(admitted(limiter, 10), 1);
  clock.now += std::chrono::hours(1);
  EXPECT_EQ(admitted(limiter, 10), 3);
}

TEST(RateLimiter, RefusesAllWithoutBurstAndNoneWithoutInterval) {
  FakeClock clock;
  RateLimiter none(clock, {std::chrono::seconds(1), 0});
  EXPECT_EQ(admitted(none, 5), 0);
  clock.now += std::chrono::hours(1);
  EXPECT_EQ(admitted(none, 5), 0);
  RateLimiter off(clock, {});
  EXPECT_EQ(admitted(off, 1000), 1000);
}

}  // namespace
}  // namespace gpumeter
