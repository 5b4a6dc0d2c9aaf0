#include "collectors/attribution/clock_loss.hpp"

#include <gtest/gtest.h>

namespace gpumeter::workloads {
namespace {

using Counters = std::vector<ClockLoss::Throttled>;

TEST(ClockLoss, IntegratesTheMissingClockOverThrottledTime) {
  ClockLoss loss;
  loss.pass(Counters{{"power", 10}, {"thermal", 5}}, 1000, 2000);
  EXPECT_EQ(loss.seconds(), 0) << "the past is not known";
  loss.pass(Counters{{"power", 12}, {"thermal", 6}}, 1500, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "a quarter of 2 s; causes at the same time count once";
  loss.pass(Counters{{"power", 12}, {"thermal", 6}}, 300, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "idle, not throttled";
  loss.pass(Counters{{"power", 13}, {"thermal", 6}}, 2100, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "above the maximum is no gain";
}

TEST(ClockLoss, CountsNoTimeWithoutReadings) {
  ClockLoss loss;
  loss.pass(Counters{}, 1000, 2000);
  loss.pass(Counters{{"power", 1}}, {}, 2000);
  loss.pass(Counters{{"power", 2}}, 1000, 0);
  EXPECT_EQ(loss.seconds(), std::nullopt);
  loss.pass(Counters{{"power", 3}}, 1000, 2000);
  EXPECT_EQ(loss.seconds(), 0.5);
  loss.interrupt();
  loss.pass(Counters{{"power", 60}}, 1000, 2000);
  EXPECT_EQ(loss.seconds(), 0.5) << "the device was away";
}

}  // namespace
}  // namespace gpumeter::workloads
