#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"
#include "exporter/json/api.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

Picture machine() {
  GpuPicture gpu{.index = 0, .gpu = "0", .uuid = "GPU-a", .vendor = "nvidia", .model = "H100", .up = true};
  gpu.values.fill(kAbsent);
  gpu.values[index_of(Quantity::utilization)] = 0.5;
  gpu.memory_size_bytes = 85899345920;
  gpu.throttled = {"power"};
  gpu.holders = {{"slurm_job", "4711", 1, "ann"}};
  gpu.runs = {{"<img onerror=alert(1)>", "ann"}};
  GpuPicture lost{.index = 1, .gpu = "1", .uuid = "GPU-b", .up = false};
  lost.values.fill(kAbsent);
  RunPicture run{
      .run = "<img onerror=alert(1)>", .user = "ann", .gpus = {"0"}, .steps = 12, .loss = {{"train", 2.5}}};
  return {.gpus = {gpu, lost}, .runs = {run}, .is_simulated = true};
}

const health::Report kReport{.devices = {{.gpu = "0",
                                          .uuid = "GPU-a",
                                          .state = health::State::degraded,
                                          .findings = {{.reason = "xid_79",
                                                        .severity = health::Severity::failed,
                                                        .action = health::Action::reboot,
                                                        .text = "XID 79",
                                                        .value = 1,
                                                        .since = std::chrono::milliseconds(7500),
                                                        .alert = "GpuXid",
                                                        .runbook = "gpuxid"}}}}};

constexpr std::string_view kNoValues =
    R"("values":{"utilization_ratio":null,"compute_active_ratio":null,"power_watts":null,"power_limit_watts":null,"memory_used_bytes":null,"temperature_celsius":null,"temperature_margin_celsius":null,"clock_hertz":null,"throttled_power_ratio":null,"throttled_thermal_ratio":null,"throttled_hardware_ratio":null})";

TEST(LiveJson, IsExactlyThisText) {
  std::string busy(kNoValues);
  busy.replace(busy.find("null"), 4, "0.5");
  EXPECT_EQ(
      live_json(machine(),
                {std::chrono::milliseconds(1700000000500), std::chrono::seconds(9), &kReport, {}, "node17"}),
      R"({"time":1700000000.5,"host":"node17","simulated":true,"gpus":[
{"gpu":"0","uuid":"GPU-a","vendor":"nvidia","model":"H100","name":"","pci_address":"","up":true,"suspended":false,"state":"degraded","reasons":[{"reason":"xid_79","severity":"failed","action":"reboot","text":"XID 79","alert":"GpuXid","runbook":"gpuxid","since_seconds":1.5}],"memory_size_bytes":85899345920,)" +
          busy +
          R"(,"throttled":["power"],"holders":[{"kind":"slurm_job","workload":"4711","share":1,"user":"ann"}],"runs":[{"run":"<img onerror=alert(1)>","user":"ann"}]},
{"gpu":"1","uuid":"GPU-b","vendor":"","model":"","name":"","pci_address":"","up":false,"suspended":false,"state":"failed","reasons":[],"memory_size_bytes":null,)" +
          std::string(kNoValues) + R"(,"throttled":[],"holders":[],"runs":[]}],
"machine":[],
"runs":[
{"run":"<img onerror=alert(1)>","user":"ann","gpus":["0"],"status":"","start_timestamp_seconds":null,"run_time_seconds":null,"last_update_timestamp_seconds":null,"step":null,"steps_total":12,"steps_per_second":null,"samples_total":null,"samples_per_second":null,"tokens_total":null,"tokens_per_second":null,"loss":{"train":2.5},"phase_seconds":{}}]}
)");
}

TEST(LiveJson, HasSparklinesOnRequest) {
  const std::vector<float> lines[] = {{0.25F, kAbsent}, {}};
  const std::string text = live_json(machine(), {.sparklines = lines});
  EXPECT_NE(text.find(R"("utilization":[0.25,null]})"), std::string::npos);
  EXPECT_NE(text.find(R"("utilization":[]})"), std::string::npos);
}

TEST(LiveJson, AnEmptyMachineIsValid) {
  EXPECT_EQ(live_json({}, {std::chrono::seconds(1)}),
            "{\"time\":1,\"host\":\"\",\"simulated\":false,\"gpus\":[],\n\"machine\":[],\n\"runs\":[]}\n");
}

using Arguments = std::vector<std::pair<std::string_view, std::string_view>>;

class HistoryJsonTest : public testing::Test {
 protected:
  HistoryJsonTest() {
    const Labels gpu(DeviceInfo{.uuid = "GPU-a"}, 0, "", {});
    for (const int watts : {100, 0, 300}) {
      list_.add(catalog::up, gpu, watts == 0 ? 0 : 1);
      if (watts != 0) list_.add(catalog::power, gpu, watts);
      list_.commit({});
      history_.sample();
      clock_.advance(std::chrono::seconds(1));
    }
  }
  std::string error(const Arguments& arguments) {
    return history_json(history_, arguments).error().message();
  }

  FakeClock clock_;
  Store store_;
  SeriesList list_{store_.attach("nvidia")};
  History history_{store_, clock_};
};

TEST_F(HistoryJsonTest, IsExactlyThisText) {
  EXPECT_EQ(*history_json(history_, Arguments{{"gpu", "0"}}),
            R"({"gpu":"0","uuid":"GPU-a","range":"5m","step_seconds":1,
"times":[1767225600,1767225601,1767225602],
"columns":{
"utilization_ratio":[null,null,null],
"compute_active_ratio":[null,null,null],
"power_watts":[100,null,300],
"power_limit_watts":[null,null,null],
"memory_used_bytes":[null,null,null],
"temperature_celsius":[null,null,null],
"temperature_margin_celsius":[null,null,null],
"clock_hertz":[null,null,null],
"throttled_power_ratio":[null,null,null],
"throttled_thermal_ratio":[null,null,null],
"throttled_hardware_ratio":[null,null,null]},
"events":[
{"time":1767225601,"name":"lost","kind":"event"},
{"time":1767225602,"name":"read_again","kind":"event"}]}
)");
}

TEST_F(HistoryJsonTest, HoursHaveMinimumMeanAndMaximum) {
  const std::string text = *history_json(history_, Arguments{{"uuid", "GPU-a"}, {"range", "6h"}});
  EXPECT_NE(text.find(R"("range":"6h","step_seconds":15,
"times":[1767225600],)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("power_watts":{"min":[100],"mean":[200],"max":[300]},)"), std::string::npos) << text;
}

TEST_F(HistoryJsonTest, AnswersForARun) {
  const Labels run{{"run", "<b>\"bert\""}, {"user", "ann"}};
  SeriesList runs(store_.attach());
  runs.add(catalog::ml_loss, run, 2.5);
  runs.commit({});
  history_.sample();
  EXPECT_EQ(*history_json(history_, Arguments{{"run", "<b>\"bert\""}, {"user", "ann"}}),
            R"({"run":"<b>\"bert\"","user":"ann","range":"5m","step_seconds":1,
"times":[1767225603],
"columns":{
"steps_per_second":[null],
"loss":[2.5]}}
)");
}

TEST_F(HistoryJsonTest, NamesTheWrongArgument) {
  const std::string usage = "use gpu=INDEX, uuid=UUID, or run=NAME and user=USER; and range=5m or range=6h";
  EXPECT_EQ(error({}), usage);
  EXPECT_EQ(error({{"gpu", "0"}, {"uuid", "GPU-a"}}), usage);
  EXPECT_EQ(error({{"user", "ann"}, {"gpu", "0"}}), usage);
  EXPECT_EQ(error({{"gpu", "0"}, {"gpu", "1"}}), "gpu=1: " + usage);
  EXPECT_EQ(error({{"gpu", "0"}, {"range", "1h"}}), "range=1h: " + usage);
  EXPECT_EQ(error({{"gpu", "0"}, {"step", "1"}}), "step=1: " + usage);
  EXPECT_EQ(error({{"gpu", "7"}}),
            "there is no history of such a GPU; /api/v1/live lists those that have one");
  EXPECT_EQ(error({{"run", "x"}, {"user", "y"}}),
            "there is no history of such a run of this user; /api/v1/live lists those that have one");
}

}  // namespace
}  // namespace gpumeter
