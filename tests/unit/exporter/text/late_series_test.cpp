#include "exporter/text/late_series.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

using std::chrono::seconds;

constexpr Nanoseconds kEpoch = seconds(1'000'000);

class LateSeriesTest : public testing::Test {
 protected:
  /// The page that is rendered this long after the first one.
  Shown page_at(seconds time, double value) { return series_.counter(value, {time, kEpoch + time}); }

  LateSeries series_;
};

TEST_F(LateSeriesTest, IsOnNoPageBeforeItsFirstEvent) {
  EXPECT_FALSE(page_at(seconds(0), 0).is_shown);
  EXPECT_FALSE(page_at(seconds(1000), 0).is_shown);
}

TEST_F(LateSeriesTest, IsAZeroForEveryScraperBeforeItIsItsFirstEvent) {
  page_at(seconds(0), 0);
  page_at(seconds(15), 0);
  for (const int time : {30, 45, 60, 75, 99}) {
    const Shown shown = page_at(seconds(time), time < 60 ? 1 : 2);
    EXPECT_TRUE(shown.is_shown) << time;
    EXPECT_EQ(shown.value, 0) << time;
    EXPECT_EQ(shown.since, 1'000'015) << time;
  }
  const Shown after = page_at(seconds(30) + seconds(70), 2);
  EXPECT_EQ(after.value, 2);
  EXPECT_EQ(after.since, 1'000'015);
}

// The daemon cannot know when such a counter began, and no scraper has a sample of it.
TEST_F(LateSeriesTest, HasItsValueAtOnceIfItWasNeverZeroOnAPage) {
  const Shown first = page_at(seconds(0), 7);
  EXPECT_TRUE(first.is_shown);
  EXPECT_EQ(first.value, 7);
  EXPECT_EQ(first.since, 0);
}

TEST_F(LateSeriesTest, StaysWhenItsSourceStartsAgainFromZero) {
  page_at(seconds(0), 7);
  page_at(seconds(15), 9);
  const Shown reset = page_at(seconds(30), 0);
  EXPECT_TRUE(reset.is_shown);
  EXPECT_EQ(reset.value, 0);
  EXPECT_EQ(reset.since, 1'000'015);
  EXPECT_EQ(page_at(seconds(45), 1).value, 1);
}

}  // namespace
}  // namespace gpumeter
