#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "collectors/table/derived.hpp"

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
