#include "collectors/table/derived.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace gpumeter {
namespace {

TEST(Integral, AveragedReadingCountsBackwards) {
  Integral busy;
  busy.advance(Integration::averaged, 0.5, 0);  // first pass: nothing observed yet
  busy.advance(Integration::averaged, 1.0, 2);
  EXPECT_EQ(busy.total(), 2.0);
}

TEST(Integral, InstantaneousReadingsMakeTrapezoids) {
  Integral energy;
  energy.advance(Integration::instantaneous, 100, 0);
  energy.advance(Integration::instantaneous, 300, 2);
  EXPECT_EQ(energy.total(), 400.0);
}

TEST(Integral, AStateHoldsUntilTheNextReading) {
  Integral throttled;
  throttled.advance(Integration::state, 1, 0);
  throttled.advance(Integration::state, 0, 3);
  throttled.advance(Integration::state, 0, 5);
  EXPECT_EQ(throttled.total(), 3.0);
}

TEST(Integral, AGapIsNotBridged) {
  Integral throttled;
  throttled.advance(Integration::state, 1, 0);
  throttled.advance(Integration::state, 1, 0);  // elapsed 0: the time between was not observed
  throttled.advance(Integration::state, 0, 1);
  EXPECT_EQ(throttled.total(), 1.0);
}

TEST(Integral, AMissedReadingLeavesItsIntervalsOut) {
  Integral energy;
  energy.advance(Integration::instantaneous, 100, 0);
  energy.miss();
  energy.advance(Integration::instantaneous, 100, 1);
  EXPECT_EQ(energy.total(), 0.0);
  energy.advance(Integration::instantaneous, 100, 1);
  EXPECT_EQ(energy.total(), 100.0);
}

TEST(HardwareCounter, IsCopied) {
  HardwareCounter bytes;
  bytes.advance(1000, 1, 64);
  EXPECT_EQ(bytes.total(), 1000.0);
  bytes.advance(1500, 1, 64);
  EXPECT_EQ(bytes.total(), 1500.0);
}

TEST(HardwareCounter, GoesOnOverAWrapAt32Bits) {
  HardwareCounter energy;
  energy.advance(4294967290.0, 1, 32);
  energy.advance(4, 1, 32);
  EXPECT_EQ(energy.total(), 4294967300.0);
}

TEST(HardwareCounter, GoesOnOverAReset) {
  HardwareCounter errors;
  errors.advance(7, 1, 64);
  errors.advance(2, 1, 64);
  EXPECT_EQ(errors.total(), 9.0);
}

TEST(HardwareCounter, ASmallStepBackIsNoReset) {
  HardwareCounter energy;
  energy.advance(100000, 1, 64);
  energy.advance(99990, 1, 64);
  EXPECT_EQ(energy.total(), 100000.0);
  energy.advance(100010, 1, 64);
  EXPECT_EQ(energy.total(), 100010.0);
}

TEST(HardwareCounter, GoesOnWithoutAJumpWhenItsSourceChanges) {
  HardwareCounter energy;
  energy.advance(5000, 1e-3, 64);
  energy.change_source();
  EXPECT_EQ(energy.total(), 5.0);
  energy.advance(900, 1, 64);  // the other source has counted since the driver was loaded
  EXPECT_EQ(energy.total(), 5.0);
  energy.advance(903, 1, 64);
  EXPECT_EQ(energy.total(), 8.0);
}

using std::chrono::seconds;

TEST(RollingExtremes, HoldsTheLastMinute) {
  RollingExtremes power;
  power.add(seconds(1), 50);
  power.add(seconds(1), 90);
  power.add(seconds(30), 70);
  EXPECT_EQ(power.max(), 90);
  EXPECT_EQ(power.min(), 50);

  power.add(seconds(60), 60);  // the readings of second 1 still count
  EXPECT_EQ(power.max(), 90);
  power.add(seconds(61), 60);  // now they no longer count
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

TEST(RollingExtremes, AreThoseOfAWalkOverTheWindow) {
  RollingExtremes power;
  std::map<std::int64_t, double> readings;
  std::mt19937 random(7);
  for (std::int64_t second = 0; second < 1000; second += 1 + static_cast<std::int64_t>(random() % 3)) {
    readings[second] = static_cast<double>(random() % 500);
    power.add(seconds(second), readings[second]);
    readings.erase(readings.begin(), readings.upper_bound(second - RollingExtremes::kWindowSeconds));
    const auto by_value = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [least, most] = std::minmax_element(readings.begin(), readings.end(), by_value);
    ASSERT_EQ(power.min(), least->second) << second;
    ASSERT_EQ(power.max(), most->second) << second;
  }
}

}  // namespace
}  // namespace gpumeter
