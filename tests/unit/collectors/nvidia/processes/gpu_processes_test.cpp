#include "collectors/nvidia/processes/gpu_processes.hpp"

#include <gtest/gtest.h>

#include "tests/unit/collectors/nvidia/listed_gpu.hpp"

// Processes of divided and lost GPUs, and the number of driver calls.

namespace gpumeter::nvidia {
namespace {

// Instance 1 is divided again, into two compute instances.
std::string divided(const std::string& of_gpu) {
  return "devices:\n  - uuid: GPU-0\n    " + of_gpu + R"(
    mig:
      mode: enabled
      mode_pending: enabled
      most: 7
      instances:
        - {index: 0, gi: 1, ci: 0, uuid: MIG-0, processes: {compute: [{pid: 10, memory: 100}]}}
        - {index: 1, gi: 1, ci: 1, uuid: MIG-1, processes: {compute: [{pid: 11, memory: 200}]}}
        - {index: 3, gi: 2, ci: 0, uuid: MIG-3, processes: {compute: [{pid: 10, memory: 30, gi: 2, ci: 0}]}}
)";
}

constexpr auto kOfInstances = "10: 130 B, -\n11: 200 B, -\n";

TEST(GpuProcesses, OfADividedGpuItsOwnListsHaveEverybody) {
  FakeDriver driver(divided(
      "processes: {samples: {period_ms: 200}, compute: [{pid: 10, memory: 100, sm: 50, gi: 1, ci: 0}]}"));
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(), "10: 100 B, -\n");
  EXPECT_EQ(driver.calls("nvmlDeviceGetComputeRunningProcesses_v3"), 1U);
}

TEST(GpuProcesses, WhereItsOwnListsAreEmptyOrNotThereEachInstanceIsAsked) {
  for (const auto* const own : {"processes: {compute: []}", "name: without"}) {
    FakeDriver driver(divided(own));
    EXPECT_EQ(ListedGpu(driver).listed(), kOfInstances) << own;
  }
}

constexpr auto kLostAt15 = R"(
devices:
  - uuid: GPU-0
    lost: {from: 15, until: 30}
    processes: {samples: {period_ms: 200}, compute: [{pid: 10, memory: 100, sm: 50}]}
)";

TEST(GpuProcesses, AGpuThatIsLostMeanwhileIsLostAtTheNextPass) {
  FakeDriver driver(kLostAt15);
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(0), "10: 100 B, 0 s\n");
  EXPECT_EQ(gpu.pass(14, 10), PassOutcome::complete);
  EXPECT_EQ(gpu.asked(15, 10), "gone");
  const auto calls = driver.calls();
  EXPECT_EQ(gpu.asked(15, 10), "gone");
  EXPECT_EQ(driver.calls(), calls);
  EXPECT_EQ(gpu.pass(16, 1), PassOutcome::gone);
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(gpu.asked(16, 1), "unsupported");
  ASSERT_TRUE((driver.set_time(31), gpu.device().attach(gpu_of("GPU-0"))));
  EXPECT_EQ(gpu.asked(31, 0), "10: 100 B, 0 s\n");
  EXPECT_EQ(gpu.asked(41, 10), "10: 100 B, 5 s\n");
  gpu.device().release();
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver.violations(), "");
}

TEST(GpuProcesses, ADriverThatIsUnloadedMeanwhileIsLetGo) {
  FakeDriver driver(std::string(kLostAt15) +
                    "errors: {nvmlDeviceGetGraphicsRunningProcesses_v3: "
                    "{steps: [[0, ok], [5, {error: driver_not_loaded}]]}}\n");
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(0), "10: 100 B, 0 s\n");
  EXPECT_EQ(gpu.pass(5, 5), PassOutcome::complete);
  EXPECT_EQ(gpu.asked(5, 5), "gone");
  EXPECT_EQ(gpu.pass(6, 1), PassOutcome::gone);
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
}

TEST(GpuProcesses, CostFourCallsEachTime) {
  FakeDriver driver("include: fixtures/h100_8.yaml");
  ListedGpu gpu(driver, "GPU-a1000000-0000-4000-8000-000000000000");
  EXPECT_EQ(gpu.listed(1), "21180: 72351744000 B, 0 s\n");
  EXPECT_EQ(gpu.asked(11, 10), "21180: 72351744000 B, 9.7 s\n");
  const auto before = driver.calls();
  EXPECT_EQ(gpu.asked(21, 10), "21180: 72351744000 B, 9.7 s\n");
  EXPECT_EQ(driver.calls() - before, 4U);
  EXPECT_EQ(gpu.device().processes_tier(), Tier::normal);
}

}  // namespace
}  // namespace gpumeter::nvidia
