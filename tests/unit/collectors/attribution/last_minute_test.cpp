#include "collectors/attribution/last_minute.hpp"

#include <gtest/gtest.h>

namespace gpumeter::workloads {
namespace {

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

}  // namespace
}  // namespace gpumeter::workloads
