#include "programs/top/snapshot.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/programs/top/machine.hpp"

namespace gpumeter::top {
namespace {

TEST(DocumentTest, ParsesSeries) {
  const auto samples = parse_series(
      R"({"series":[
{"name":"gpu_power_watts","labels":{"gpu":"0","uuid":"GPU-1"},"value":301.5,"unit":"watts","type":"gauge","age_seconds":0.5},
{"name":"ml_loss","labels":{"run":"a\u001b[31m"},"value":"NaN","unit":"","type":"gauge","age_seconds":0.5},
{"name":"ml_step","labels":{"run":"a\u001b[31m"},"value":7,"unit":"","type":"gauge","age_seconds":2}
]})",
      Charset::ascii);
  ASSERT_TRUE(samples) << samples.error().message();
  ASSERT_EQ(samples->size(), 2U) << "NaN is no value";
  EXPECT_EQ((*samples)[0].name, "gpu_power_watts");
  EXPECT_EQ((*samples)[0].label("uuid"), "GPU-1");
  EXPECT_EQ((*samples)[0].label("model"), "");
  EXPECT_EQ((*samples)[0].value, 301.5);
  EXPECT_EQ((*samples)[0].age_seconds, 0.5);
  EXPECT_EQ((*samples)[1].label("run"), "a?[31m");
}

TEST(DocumentTest, MakesNamesOfLabelsPrintable) {
  const auto series =
      parse_series(R"({"series":[{"name":"a","labels":{"x\u001b[2J":"1"},"value":1}]})", Charset::ascii);
  ASSERT_TRUE(series);
  EXPECT_EQ(series->at(0).label("x?[2J"), "1");
}

TEST(DocumentTest, ParsesHealth) {
  const auto health = parse_health(
      R"({"devices":[{"gpu":"0","uuid":"GPU-1","vendor":"nvidia","model":"H100","pci_address":"0000:17:00.0","state":"failed",
"since_seconds":12.3,"reasons":[{"reason":"xid_79","severity":"failed","action":"reboot","text":"XID 79: off the bus","value":1,
"since_seconds":12.3,"alert":"GpuXid","runbook":"gpuxid"}]}],
"machine":[{"reason":"devices_missing","severity":"failed","action":"reboot","text":"7 of 8"}],"state":"failed"})",
      Charset::utf8);
  ASSERT_TRUE(health) << health.error().message();
  ASSERT_EQ(health->gpus.size(), 1U);
  EXPECT_EQ(health->gpus[0].state, State::failed);
  EXPECT_EQ(health->gpus[0].state_seconds, 12.3);
  ASSERT_EQ(health->gpus[0].findings.size(), 1U);
  EXPECT_EQ(health->gpus[0].findings[0].text, "XID 79: off the bus");
  EXPECT_EQ(health->gpus[0].findings[0].action, "reboot");
  ASSERT_EQ(health->machine.size(), 1U);
  EXPECT_EQ(health->machine[0].since_seconds, std::nullopt);
}

TEST(DocumentTest, RejectsOtherDocuments) {
  for (const char* text : {"", "<html>", "[]", "{}", "{\"series\":{}}", "{\"series\":[", "\xff"}) {
    EXPECT_FALSE(parse_series(text, Charset::utf8)) << text;
    EXPECT_FALSE(parse_health(text, Charset::utf8)) << text;
  }
}

TEST(DocumentTest, ParsesTheHistoryOfAGpu) {
  const auto past = parse_history(
      R"({"uuid":"GPU-0","times":[1,2],"columns":{"utilization_ratio":[0.5,null],"power_watts":"x"}})",
      Charset::ascii);
  ASSERT_TRUE(past);
  EXPECT_EQ(past->uuid, "GPU-0");
  EXPECT_EQ(past->utilization, (std::vector<Number>{0.5, std::nullopt}));
  EXPECT_TRUE(past->power.empty());
  EXPECT_FALSE(parse_history("{}", Charset::ascii));
}

TEST(DocumentTest, WritesALineOfAscii) {
  EXPECT_EQ(*one_line("{\"gpus\": [\n1],\n\"host\": \"n\u00f6\u202e\"}"),
            R"({"gpus":[1],"host":"n\u00f6\u202e"})");
  EXPECT_FALSE(one_line("{}"));
  EXPECT_EQ(error_line("no\n"), R"({"error":"no\n"})");
}

TEST(DocumentTest, OmitsElementsOfOtherTypes) {
  const auto samples =
      parse_series(R"({"series":[1,null,[],{},{"name":3,"labels":[],"value":1}]})", Charset::utf8);
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ((*samples)[0].name, "");
  const auto health = parse_health(R"({"devices":[1,{"gpu":0,"reasons":{}}],"machine":7})", Charset::utf8);
  ASSERT_TRUE(health);
  EXPECT_EQ(health->gpus.size(), 2U);
}

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
