#include "collectors/support/rolling_extremes.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

using std::chrono::seconds;

TEST(RollingExtremes, HoldsTheLastMinute) {
  RollingExtremes power;
  power.add(seconds(1), 50);
  power.add(seconds(1), 90);
  power.add(seconds(30), 70);
  EXPECT_EQ(power.max(), 90);
  EXPECT_EQ(power.min(), 50);

  power.add(seconds(60), 60);  // the readings of second 1 are still in
  EXPECT_EQ(power.max(), 90);
  power.add(seconds(61), 60);  // and now they are out
  EXPECT_EQ(power.max(), 70);
  EXPECT_EQ(power.min(), 60);
}

TEST(RollingExtremes, ForgetsAllAfterALongPause) {
  RollingExtremes power;
  power.add(seconds(10), 400);
  power.add(seconds(1000), 5);
  EXPECT_EQ(power.max(), 5);
  EXPECT_EQ(power.min(), 5);
}

}  // namespace
}  // namespace gpumeter
