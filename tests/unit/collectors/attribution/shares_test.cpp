#include "collectors/attribution/shares.hpp"

#include <gtest/gtest.h>

namespace gpumeter::workloads {
namespace {

using Parts = std::vector<double>;

Parts parts_of(const std::vector<Claim>& claims) {
  Parts parts;
  divide(claims, parts);
  return parts;
}

TEST(Shares, AreByBusyTimeWhereSomebodyWasBusy) {
  EXPECT_EQ(parts_of({{3, 0, 1}, {1, 900, 1}, {0, 100, 1}}), (Parts{0.75, 0.25, 0}));
}

TEST(Shares, AreByMemoryWhereNobodyWasBusy) {
  EXPECT_EQ(parts_of({{0, 300, 1}, {0, 100, 5}, {0, 0, 1}}), (Parts{0.75, 0.25, 0}));
}

TEST(Shares, AreByThePartsThatAreHeldWhereTheDeviceIsDivided) {
  const std::vector<Claim> claims = {{3, 900, 1, 0.25}, {1, 100, 1, 0.5}, {0, 0, 0, 0.25}};
  EXPECT_EQ(parts_of(claims), (Parts{0.75, 0.25, 0}));
  Parts parts;
  EXPECT_TRUE(divide(claims, parts, true));
  EXPECT_EQ(parts, (Parts{0.25, 0.5, 0.25}));
}

TEST(Shares, AreEqualForEachProcessWhereNothingIsKnown) {
  EXPECT_EQ(parts_of({{0, 0, 3}, {0, 0, 1}, {0, 0, 0}}), (Parts{0.75, 0.25, 0}));
}

TEST(Shares, AreNobodysWhereNobodyIs) {
  Parts parts = {7};
  EXPECT_FALSE(divide({}, parts));
  EXPECT_EQ(parts, Parts{});
  EXPECT_EQ(parts_of({{0, 0, 0}, {0, 0, 0}}), (Parts{0, 0}));
}

using namespace std::chrono_literals;

TEST(LastMinute, HoldsWhatCameWithinIt) {
  LastMinute minute;
  minute.add(1000s, 1);
  minute.add(1000s + 900ms, 2);
  minute.add(1030s, 4);
  EXPECT_EQ(minute.sum(1059s), 7);
  EXPECT_EQ(minute.sum(1060s), 4);
  minute.add(1089s, 8);
  EXPECT_EQ(minute.sum(1089s), 12);
  EXPECT_EQ(minute.sum(1090s), 8);
  EXPECT_EQ(minute.sum(9999s), 0);
}

TEST(LastMinute, IsTheSumOfTheLastSixtySecondsAtAnyStep) {
  for (const auto step : {1s, 7s, 10s, 59s, 60s, 61s}) {
    LastMinute minute;
    for (Nanoseconds now = 0s; now < 1000s; now += step) {
      minute.add(now, 1);
      EXPECT_EQ(minute.sum(now), std::min(now, Nanoseconds(59s)) / step + 1) << step.count();
    }
  }
}

TEST(IdlePower, IsALowQuantileOfTheWindowsWithoutActivity) {
  IdlePower idle;
  idle.note(false, 6000, 10, 8);
  idle.note(false, 700, 10, {});
  idle.note(false, 70, 1, 0);
  EXPECT_EQ(idle.watts(), std::nullopt) << "busy; unknown; too short";
  idle.note(false, 700, 10, 0);
  EXPECT_EQ(idle.watts(), 70);
  idle.note(true, 6000, 10, 9);
  EXPECT_EQ(idle.watts(), 70) << "the best that is known";
  idle.note(true, 1160, 10, 0.04);
  EXPECT_EQ(idle.watts(), 116) << "with a context";
  idle.note(true, 1320, 10, 0);
  EXPECT_EQ(idle.watts(), 117);
  idle.note(true, 1100, 10, 0);
  EXPECT_EQ(idle.watts(), 110);
  idle.note(false, 5000, 10, 9);
  EXPECT_EQ(idle.watts(), 70);
}

}  // namespace
}  // namespace gpumeter::workloads
