#include "programs/top/model/progress.hpp"

#include <gtest/gtest.h>

namespace gpumeter::top {
namespace {

class ProgressTest : public testing::Test {
 protected:
  const top::Run& at(double seconds, double steps, double loading, double training) {
    top::Run run;
    run.name = "llama";
    run.steps = steps;
    run.run_seconds = 1000 + seconds;
    run.phases = {{"data_loading", loading, {}}, {"training", training, {}}};
    snapshot_.runs = {run};
    progress_.update(snapshot_, seconds);
    return snapshot_.runs[0];
  }

  Snapshot snapshot_;
  Progress progress_;
};

TEST_F(ProgressTest, AtFirstTheRateIsTheMean) {
  EXPECT_EQ(at(0, 2000, 1, 1).step_rate, 2);
  EXPECT_EQ(at(0, 2000, 1, 1).phase, "") << "no phase has grown yet";
}

TEST_F(ProgressTest, ThenItIsThatOfTheLastMinute) {
  at(0, 2000, 1, 1);
  at(10, 2040, 3, 2);
  EXPECT_EQ(snapshot_.runs[0].step_rate, 4);
  EXPECT_EQ(snapshot_.runs[0].phase, "data_loading");
  EXPECT_EQ(snapshot_.runs[0].phase_seconds, 0.05);
  for (int second = 11; second <= 120; ++second) at(second, 2040, 3, 2);
  EXPECT_EQ(snapshot_.runs[0].step_rate, 0) << "the run stalls";
  EXPECT_EQ(snapshot_.runs[0].phase, "");
}

TEST_F(ProgressTest, ARestartedCounterHasNoRate) {
  at(0, 2000, 1, 1);
  EXPECT_EQ(at(20, 102, 1, 1).step_rate, 102.0 / 1020);
}

}  // namespace
}  // namespace gpumeter::top
