#include "exporter/json/live.hpp"

#include <gtest/gtest.h>

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
      live_json(machine(), {std::chrono::milliseconds(1700000000500), std::chrono::seconds(9), &kReport}),
      R"({"time":1700000000.5,"simulated":true,"gpus":[
{"gpu":"0","uuid":"GPU-a","vendor":"nvidia","model":"H100","name":"","pci_address":"","up":true,"suspended":false,"state":"degraded","reasons":[{"reason":"xid_79","severity":"failed","action":"reboot","text":"XID 79","alert":"GpuXid","runbook":"gpuxid","since_seconds":1.5}],"memory_size_bytes":85899345920,)" +
          busy +
          R"(,"throttled":["power"],"holders":[{"kind":"slurm_job","workload":"4711","share":1,"user":"ann"}],"runs":[{"run":"<img onerror=alert(1)>","user":"ann"}]},
{"gpu":"1","uuid":"GPU-b","vendor":"","model":"","name":"","pci_address":"","up":false,"suspended":false,"state":"failed","reasons":[],"memory_size_bytes":null,)" +
          std::string(kNoValues) + R"(,"throttled":[],"holders":[],"runs":[]}],
"machine":[],
"runs":[
{"run":"<img onerror=alert(1)>","user":"ann","gpus":["0"],"status":"","start_timestamp_seconds":null,"run_time_seconds":null,"last_update_timestamp_seconds":null,"step":null,"steps_total":12,"steps_per_second":null,"samples_total":null,"tokens_total":null,"loss":{"train":2.5},"phase_seconds":{}}]}
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
            "{\"time\":1,\"simulated\":false,\"gpus\":[],\n\"machine\":[],\n\"runs\":[]}\n");
}

}  // namespace
}  // namespace gpumeter
