#include "exporter/history/track.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "exporter/history/history.hpp"

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

using testing::ElementsAre;
using testing::IsNan;

constexpr std::array kColumns = {Column{"a"}, Column{"b", 1000}};

class TrackTest : public testing::Test {
 protected:
  void add(std::int64_t second, double a, double b = kAbsent) {
    const double values[] = {a, b};
    track_.add(second, values);
  }
  Track<float> track_{kColumns};
};

TEST_F(TrackTest, HasNothingAtFirst) {
  for (const Range range : {Range::minutes, Range::hours}) EXPECT_EQ(track_.read(range, 7).length, 0U);
}

TEST_F(TrackTest, HasAValueForEachSecond) {
  for (std::int64_t second = 100; second < 104; ++second) add(second, static_cast<double>(second), 5000);
  const Stretch stretch = track_.read(Range::minutes, 103);
  EXPECT_EQ(stretch.first_second, 100);
  EXPECT_EQ(stretch.step, 1);
  EXPECT_THAT(stretch.columns[0].mean, ElementsAre(100, 101, 102, 103));
  EXPECT_THAT(stretch.columns[1].mean, ElementsAre(5000, 5000, 5000, 5000));
  EXPECT_TRUE(stretch.columns[0].min.empty());
}

TEST_F(TrackTest, LeavesGapsOfTimeAndOfValues) {
  add(100, 1);
  add(103, kAbsent);
  add(104, 2);
  EXPECT_THAT(track_.read(Range::minutes, 105).columns[0].mean,
              ElementsAre(1, IsNan(), IsNan(), IsNan(), 2, IsNan()));
}

TEST_F(TrackTest, KeepsExactlyFiveMinutes) {
  for (std::int64_t second = 1; second <= 1000; ++second) add(second, static_cast<double>(second));
  const Stretch stretch = track_.read(Range::minutes, 1000);
  EXPECT_EQ(stretch.first_second, 701);
  EXPECT_EQ(stretch.length, 300U);
  EXPECT_EQ(stretch.columns[0].mean.front(), 701);
  EXPECT_EQ(stretch.columns[0].mean.back(), 1000);
}

TEST_F(TrackTest, SummarisesFifteenSeconds) {
  for (std::int64_t second = 30; second < 45; ++second) add(second, static_cast<double>(second - 30));
  add(45, 7, kAbsent);
  const Stretch stretch = track_.read(Range::hours, 45);
  EXPECT_EQ(stretch.first_second, 30);
  EXPECT_EQ(stretch.step, 15);
  EXPECT_THAT(stretch.columns[0].min, ElementsAre(0, 7));
  EXPECT_THAT(stretch.columns[0].mean, ElementsAre(7, 7));
  EXPECT_THAT(stretch.columns[0].max, ElementsAre(14, 7));
  EXPECT_THAT(stretch.columns[1].mean, ElementsAre(IsNan(), IsNan()));
}

TEST_F(TrackTest, LeavesAbsentValuesOutOfAMean) {
  add(0, 4);
  add(1, kAbsent);
  add(2, 6);
  EXPECT_THAT(track_.read(Range::hours, 2).columns[0].mean, ElementsAre(5));
}

TEST_F(TrackTest, KeepsExactlySixHours) {
  constexpr std::int64_t kEnd = 10 * 3600;
  for (std::int64_t second = 0; second < kEnd; ++second) add(second, static_cast<double>(second / 15));
  const Stretch stretch = track_.read(Range::hours, kEnd - 1);
  EXPECT_EQ(stretch.first_second, 4 * 3600);
  EXPECT_EQ(stretch.length, 1440U);
  std::vector<float> expected(1440);
  std::iota(expected.begin(), expected.end(), 960.0F);
  EXPECT_EQ(stretch.columns[0].mean, expected);
  EXPECT_EQ(stretch.columns[0].min, expected);
}

TEST_F(TrackTest, ShowsNoOldValuesAfterAPause) {
  add(0, 1);
  add(20 * 3600, 2);
  EXPECT_THAT(track_.read(Range::hours, 20 * 3600).columns[0].mean, ElementsAre(2));
  EXPECT_THAT(track_.read(Range::minutes, 20 * 3600).columns[0].mean, ElementsAre(2));
  EXPECT_EQ(track_.read(Range::minutes, 30 * 3600).length, 0U);
}

TEST_F(TrackTest, GivesOneColumnOfFiveMinutesInFull) {
  add(10, 3);
  const std::vector<float> line = track_.minutes(0, 11);
  ASSERT_EQ(line.size(), 300U);
  EXPECT_EQ(line[298], 3);
  EXPECT_TRUE(std::isnan(line[297]));
  EXPECT_TRUE(std::isnan(line[299]));
}

TEST(HalfTrack, StoresScaledNumbers) {
  Track<Half> track(kColumns);
  const double values[] = {0.25, 42'000};
  track.add(1, values);
  const Stretch stretch = track.read(Range::minutes, 1);
  EXPECT_EQ(stretch.columns[0].mean[0], 0.25F);
  EXPECT_EQ(stretch.columns[1].mean[0], 42'000.0F);
}

}  // namespace
}  // namespace gpumeter
