#include "programs/benchmark/guard.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpumeter::benchmark {
namespace {

Supervised supervised(const std::function<Outcome()>& work) {
  return supervise(work, std::chrono::seconds(10), [](int) { return std::nullopt; });
}

TEST(BenchmarkGuardTest, WorkReturnsItsOutcome) {
  Outcome outcome;
  outcome.measurements = {{Quantity::flops, "bf16", "cublas", 1.5e12, 1e10, 40},
                          {Quantity::transfer, "host_to_device", "opencl", 5.4e10, 0.1, 9}};
  outcome.failures = {"gemm fp32: two\nlines"};
  outcome.notes = {"a\tnote"};
  outcome.facts = {{"cublas", "120402"}};
  const Supervised done = supervised([&] { return outcome; });
  EXPECT_EQ(done.end, End::finished);
  EXPECT_EQ(done.outcome.measurements, outcome.measurements);
  EXPECT_EQ(done.outcome.failures, outcome.failures);
  EXPECT_EQ(done.outcome.notes, outcome.notes);
  EXPECT_EQ(done.outcome.facts, outcome.facts);
}

TEST(BenchmarkGuardTest, AProcessThatADriverEndsHasNoOutcome) {
  const Supervised done = supervised([]() -> Outcome { _exit(3); });
  EXPECT_EQ(done.end, End::stopped);
  EXPECT_EQ(done.reason, "the driver ended the process with status 3");
}

TEST(BenchmarkGuardTest, ItsOwnWorkloadIsNobodyElse) {
  const std::string cgroup = "0::/system.slice/gpumeter-benchmark.service\n";
  EXPECT_TRUE(is_part_of(cgroup, {"unit", "gpumeter-benchmark.service"}));
  EXPECT_FALSE(is_part_of(cgroup, {"unit", "ollama.service"}));
  EXPECT_FALSE(is_part_of(cgroup, {"unit", ""}));
}

/// An answer of the daemon with one GPU, as it gives it for an idle H100.
constexpr const char* kLive = R"({"time":1795395924.738,"simulated":false,"gpus":[
{"gpu":"0","uuid":"GPU-1","vendor":"nvidia","model":"NVIDIA H100 80GB HBM3","name":"","pci_address":"0000:0c:00.0","up":true,"suspended":false,"state":"ok","reasons":[],"memory_size_bytes":85899345920,"values":{"utilization_ratio":0,"compute_active_ratio":null,"power_watts":70,"power_limit_watts":700,"memory_used_bytes":6.1e+08,"temperature_celsius":31},"throttled":[],"holders":[{"kind":"unattributed","workload":"unattributed","share":1,"user":""}],"runs":[],"utilization":[null,null,0,0.01]}],
"machine":[],"runs":[]})";
constexpr const char* kSeries = R"({"series":[
{"name":"gpu_mode","labels":{"gpu":"0","uuid":"GPU-1","mode":"compute","state":"default"},"value":1,"unit":"","type":"gauge","age_seconds":0.4},
{"name":"gpu_mode","labels":{"gpu":"0","uuid":"GPU-1","mode":"compute","state":"exclusive_process"},"value":0,"unit":"","type":"gauge","age_seconds":0.4},
{"name":"gpu_mode","labels":{"gpu":"0","uuid":"GPU-1","mode":"mig","state":"enabled"},"value":0,"unit":"","type":"gauge","age_seconds":0.4},
{"name":"gpu_info","labels":{"gpu":"0","uuid":"GPU-1","driver_version":"580.95.05"},"value":1,"unit":"","type":"gauge","age_seconds":0.4}
]})";

Gpu idle() { return (*parse_gpus(kLive, kSeries)).at(0); }
Gpu with(const std::string& from, const std::string& to) {
  std::string live = kLive;
  std::string series = kSeries;
  std::string& text = live.find(from) != std::string::npos ? live : series;
  text.replace(text.find(from), from.size(), to);
  return (*parse_gpus(live, series)).at(0);
}
std::string refusal(const std::string& from, const std::string& to) {
  return why_not(with(from, to)).value_or("none");
}

TEST(BenchmarkGpuTest, AnIdleGpuMayBeMeasured) {
  const Gpu gpu = idle();
  EXPECT_EQ(why_not(gpu), std::nullopt);
  EXPECT_EQ(gpu.driver_version, "580.95.05");
  EXPECT_EQ(gpu.power_limit, 700);
  EXPECT_EQ(gpu.highest_utilization, 0.01);
}

TEST(BenchmarkGpuTest, EachConditionIsAReason) {
  EXPECT_EQ(refusal(R"("up":true)", R"("up":false)"), "the daemon cannot read it");
  EXPECT_EQ(refusal(R"("suspended":false)", R"("suspended":true)"), "it sleeps");
  EXPECT_EQ(refusal(R"({"kind":"unattributed","workload":"unattributed")",
                    R"({"kind":"slurm_job","workload":"4711")"),
            "the slurm_job 4711 uses it");
  EXPECT_EQ(refusal("0,0.01]", "0.4,0.01]"), "it was 40 % busy within the last 5 minutes");
  EXPECT_EQ(refusal("6.1e+08", "6.1e+09"), "7 % of its memory is used");
  EXPECT_EQ(refusal(R"("temperature_celsius":31)", R"("temperature_celsius":60)"), "it is hotter than 60 °C");
  EXPECT_EQ(refusal(R"("exclusive_process"},"value":0)", R"("exclusive_process"},"value":1)"),
            "its compute mode is exclusive, so the benchmark would keep a job from starting");
  EXPECT_EQ(refusal(R"("state":"enabled"},"value":0)", R"("state":"enabled"},"value":1)"),
            "it is divided into MIG instances");
  EXPECT_EQ(refusal(R"("temperature_celsius":31)", R"("temperature_celsius":null)"), "none");
}

TEST(BenchmarkGpuTest, IsFoundByNumberUuidAndAddress) {
  const std::vector<Gpu> gpus{idle()};
  for (const char* name : {"0", "GPU-1", "0000:0c:00.0", "0000:0C:00.0"})
    EXPECT_NE(find_gpu(gpus, name), nullptr) << name;
  for (const char* name : {"", "1", "GPU-2", "0000:0d:00.0"})
    EXPECT_EQ(find_gpu(gpus, name), nullptr) << name;
}

TEST(BenchmarkGpuTest, OtherAnswersAreErrors) {
  EXPECT_FALSE(parse_gpus("", kSeries));
  EXPECT_FALSE(parse_gpus(R"({"gpus":3})", kSeries));
  EXPECT_FALSE(parse_gpus(kLive, "[]"));
  EXPECT_TRUE(parse_gpus(R"({"gpus":[3,{"uuid":7,"values":[],"holders":[[]],"utilization":{}}]})",
                         R"({"series":[4,{}]})"));
}

}  // namespace
}  // namespace gpumeter::benchmark
