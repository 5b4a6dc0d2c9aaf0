#include "collectors/nvidia/throttle_clock.hpp"

#include <gtest/gtest.h>

namespace gpumeter::nvidia {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ThrottleUnit, WithoutEvidenceCountsNanoseconds) {
  ThrottleUnit unit;
  EXPECT_EQ(unit.seconds(2e9), 2.0);
  unit.learn(900'000, seconds(1), false);  // as microseconds nearly all of it, but no reason held
  EXPECT_EQ(unit.seconds(2e9), 2.0);
}

TEST(ThrottleUnit, MoreMicrosecondsThanHavePassedAreNanoseconds) {
  ThrottleUnit unit;
  unit.learn(1'600'000, seconds(1), true);
  EXPECT_EQ(unit.seconds(1e9), 1.0);
  unit.learn(1'000'000, seconds(1), true);  // it is known: nothing changes it any more
  EXPECT_EQ(unit.seconds(1e9), 1.0);
}

TEST(ThrottleUnit, AsManyMicrosecondsAsHavePassedAreMicrosecondsWhileTheReasonHolds) {
  ThrottleUnit unit;
  unit.learn(990'000, seconds(1), true);
  EXPECT_EQ(unit.seconds(1e6), 1.0);
  unit.learn(5'000'000, seconds(1), true);
  EXPECT_EQ(unit.seconds(1e6), 1.0);
}

TEST(ThrottleUnit, AReadingAHalfLateIsStillMicroseconds) {
  ThrottleUnit unit;
  unit.learn(1'400'000, seconds(1), true);
  EXPECT_EQ(unit.seconds(1e6), 1.0);
}

TEST(ThrottleUnit, ALittleGrowthSaysNothing) {
  ThrottleUnit unit;
  unit.learn(500'000, seconds(1), true);
  unit.learn(0, seconds(1), true);
  unit.learn(1'000'000, seconds(0), true);
  EXPECT_EQ(unit.seconds(1e9), 1.0);
  unit.learn(60'000, milliseconds(100), true);  // more than half of a tenth of a second
  EXPECT_EQ(unit.seconds(1e6), 1.0);
}

TEST(Growth, IsNothingAtFirstAndAfterAReset) {
  Growth growth;
  EXPECT_EQ(growth.of(100), 0);
  EXPECT_EQ(growth.of(130), 30);
  EXPECT_EQ(growth.of(130), 0);
  EXPECT_EQ(growth.of(20), 0);
  EXPECT_EQ(growth.of(25), 5);
  growth.restart();
  EXPECT_EQ(growth.of(1000), 0);
}

}  // namespace
}  // namespace gpumeter::nvidia
