#include "exporter/history/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gpumeter {
namespace {

float through(float value) { return static_cast<float>(Half(value)); }

TEST(Half, KeepsWhatElevenBitsHold) {
  for (const float value : {0.0F, 1.0F, 0.5F, -40.0F, 2047.0F, 65504.0F, 6.103515625e-05F}) {
    EXPECT_EQ(through(value), value);
  }
}

TEST(Half, RoundsToTheNearest) {
  EXPECT_EQ(through(2049.0F), 2048.0F);  // halfway: to the even one
  EXPECT_EQ(through(2051.0F), 2052.0F);
  EXPECT_EQ(through(0.1F), 0.0999755859375F);
  EXPECT_EQ(through(1e-7F), 1.1920928955078125e-07F);
}

TEST(Half, BoundsTheErrorOfEveryPower) {
  for (float watts = 1; watts < 2000; watts += 0.37F) EXPECT_NEAR(through(watts) / watts, 1, 0.0005) << watts;
}

TEST(Half, ShortensWhatIsTooLarge) {
  EXPECT_EQ(through(1e9F), 65504.0F);
  EXPECT_EQ(through(-std::numeric_limits<float>::infinity()), -65504.0F);
}

TEST(Half, IsAbsentAtFirst) {
  EXPECT_TRUE(std::isnan(static_cast<float>(Half())));
  EXPECT_TRUE(std::isnan(through(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace gpumeter
