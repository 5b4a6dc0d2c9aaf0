#include "exporter/json/workloads.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

WorkloadCost job() {
  WorkloadCost cost{"slurm_job", "4711", {{"user", "alice"}, {"user", "hidden"}}, {}, {}, true, {}};
  cost.begun = std::chrono::milliseconds(1700000000500);
  cost.seen = std::chrono::milliseconds(1700000060500);
  cost.devices.push_back({"GPU-1", 0, 15000.5, 60, 45, 15, 1024, {{"power", 3.5}, {"thermal", 0}}});
  cost.devices.push_back({"GPU-2", 1, {}, 40, {}, {}, 2048, {}});
  return cost;
}

TEST(WorkloadsJson, HasTheSumsAndTheDevices) {
  EXPECT_EQ(
      workloads_json(std::vector{job()}),
      "{\"workloads\":[\n"
      "{\"kind\":\"slurm_job\",\"workload\":\"4711\",\"state\":\"ended\","
      "\"start_timestamp_seconds\":1700000000.5,\"end_timestamp_seconds\":1700000060.5,"
      "\"labels\":{\"user\":\"alice\"},\n"
      "  \"joules\":15000.5,\"gpu_seconds\":100,\"busy_seconds\":45,\"busy_ratio\":0.75,\"idle_ratio\":0.25,"
      "\"peak_memory_bytes\":2048,\"throttled_seconds\":{\"power\":3.5,\"thermal\":0},\n"
      "  \"devices\":[{\"gpu\":\"0\",\"uuid\":\"GPU-1\",\"joules\":15000.5,\"gpu_seconds\":60,"
      "\"busy_seconds\":45,\"busy_ratio\":0.75,\"idle_ratio\":0.25,\"peak_memory_bytes\":1024,"
      "\"throttled_seconds\":{\"power\":3.5,\"thermal\":0}},\n"
      "   {\"gpu\":\"1\",\"uuid\":\"GPU-2\",\"joules\":null,\"gpu_seconds\":40,\"busy_seconds\":null,"
      "\"busy_ratio\":null,\"idle_ratio\":null,\"peak_memory_bytes\":2048,\"throttled_seconds\":{}}]}\n"
      "]}\n");
  EXPECT_EQ(workloads_json({}), "{\"workloads\":[\n]}\n");
}

TEST(WorkloadsJson, ARunningOneHasNoEnd) {
  WorkloadCost running = job();
  running.has_ended = false;
  const std::string text = workloads_json(std::vector{running});
  EXPECT_NE(text.find("\"state\":\"running\""), std::string::npos);
  EXPECT_NE(text.find("\"end_timestamp_seconds\":null"), std::string::npos);
}

TEST(WorkloadsJson, ALineForALog) {
  EXPECT_EQ(workload_line(job()),
            "kind=slurm_job workload=4711 state=ended user=alice gpus=2 gpu_seconds=100 busy_ratio=0.75 "
            "idle_ratio=0.25 busy_seconds=45 joules=15000.5 peak_memory_bytes=2048 "
            "throttled_power_seconds=3.5\n");
  WorkloadCost named = job();
  named.labels = {
      {"slurm_account", "nlp"}, {"slurm_job", "4711"}, {"slurm_job_name", "bert"}, {"user", "alice"}};
  EXPECT_TRUE(workload_line(named).starts_with(
      "kind=slurm_job workload=4711 state=ended slurm_account=nlp slurm_job_name=bert user=alice gpus=2 "));
  WorkloadCost odd;
  odd.kind = "other";
  odd.workload = "a b\"c";
  EXPECT_EQ(workload_line(odd), "kind=other workload=\"a b\\\"c\" state=running gpus=0 gpu_seconds=0\n");
}

}  // namespace
}  // namespace gpumeter
