#include "programs/top/model/snapshot.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/programs/top/machine.hpp"

namespace gpumeter::top {
namespace {

TEST(SnapshotTest, JoinsSeriesAndHealth) {
  const Snapshot it = machine();
  EXPECT_EQ(it.version, "1.2.3");
  EXPECT_TRUE(it.is_judged);
  EXPECT_FALSE(it.is_simulated);
  ASSERT_EQ(it.gpus.size(), 3U);
  const Gpu& busy = it.gpus[0];
  EXPECT_EQ(busy.state, State::ok);
  EXPECT_EQ(busy.utilization, 0.87);
  EXPECT_EQ(busy.power, 361);
  EXPECT_EQ(busy.power_limit, 450) << "the enforced limit";
  EXPECT_EQ(busy.memory_used, 40.0 * 1073741824) << "of the GPU's memory, not of its window";
  EXPECT_EQ(busy.margin, 25) << "of the sensor closest to its limit";
  ASSERT_EQ(busy.shares.size(), 2U);
  EXPECT_EQ(busy.shares[0].user, "alice");
  EXPECT_EQ(it.gpus[1].state, State::degraded);
  EXPECT_TRUE(it.gpus[1].shares.empty()) << "nobody is there";
  EXPECT_EQ(it.gpus[2].state, State::failed);
  EXPECT_EQ(it.gpus[2].utilization, std::nullopt);
}

TEST(SnapshotTest, WithoutHealthTheStateIsThatOfGpuUp) {
  const Snapshot it = machine(false);
  EXPECT_EQ(it.gpus[1].state, State::up);
  EXPECT_EQ(it.gpus[2].state, State::down);
}

TEST(SnapshotTest, JoinsRuns) {
  const Snapshot it = machine();
  ASSERT_EQ(it.runs.size(), 1U);
  EXPECT_EQ(it.runs[0].name, "llama");
  EXPECT_EQ(it.runs[0].step, 1200);
  EXPECT_EQ(it.runs[0].gpus, std::vector<std::string>{"0"});
  EXPECT_EQ(it.runs[0].age_seconds, 0) << "the time of the last message is absent";
}

TEST(SnapshotTest, AsksForEachSeriesOnce) {
  std::vector<std::string_view> names = snapshot_series();
  EXPECT_LT(names.size(), 64U) << "the daemon rejects requests with more arguments";
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace gpumeter::top
