#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// A divided GPU: its instances, and what happens when it is divided anew.

namespace gpumeter::nvidia {
namespace {

// At 5 s the instance is made anew: the same id, another uuid.
constexpr auto kMadeAnew = R"(
devices:
  - uuid: GPU-0
    gpm: {supported: yes, metrics: {2: 70}}
    mig:
      mode: enabled
      mode_pending: enabled
      most: 7
      instances:
        - {index: 0, gi: 3, ci: 0, uuid: MIG-old, name: A MIG 1g.10gb, present: {steps: [[0, yes], [5, no]]},
           memory: {total: 100, reserved: 0, used: 40, free: 60}, gpm: {supported: yes, metrics: {1: 50}}}
        - {index: 0, gi: 3, ci: 0, uuid: MIG-new, name: A MIG 1g.10gb, present: {steps: [[0, no], [5, yes]]},
           memory: {total: 100, reserved: 0, used: 10, free: 90}, gpm: {supported: yes, metrics: {1: 80}}}
)";

TEST(NvidiaMig, AnInstanceHasItsOwnSeries) {
  FakeDriver driver(kMadeAnew);
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.lines({"gpu_partition"}),
            "gpu_partition_busy_seconds_total{partition=\"1g.10gb:3\"} 0\n"
            "gpu_partition_info{partition=\"1g.10gb:3\",profile=\"1g.10gb\",gpu_instance=\"3\",mig_uuid="
            "\"MIG-old\"} 1\n"
            "gpu_partition_memory_free_bytes{partition=\"1g.10gb:3\",memory=\"vram\"} 60\n"
            "gpu_partition_memory_reserved_bytes{partition=\"1g.10gb:3\",memory=\"vram\"} 0\n"
            "gpu_partition_memory_size_bytes{partition=\"1g.10gb:3\",memory=\"vram\"} 100\n"
            "gpu_partition_memory_used_bytes{partition=\"1g.10gb:3\",memory=\"vram\"} 40\n"
            "gpu_partition_utilization_ratio{partition=\"1g.10gb:3\"} 0.5\n");
}

TEST(NvidiaMig, OneThatIsMadeAnewWithTheSameIdIsAttachedAnew) {
  FakeDriver driver(kMadeAnew);
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.pass(Tier::normal, 4, 1), PassOutcome::complete);
  EXPECT_EQ(gpu.pass(Tier::normal, 5, 1), PassOutcome::gone);
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  gpu.attach(6).sampled(6);
  EXPECT_EQ(gpu.lines({"gpu_partition_info", "gpu_partition_memory_used", "gpu_events"}),
            "gpu_events_total{event=\"bus_lost\"} 0\n"
            "gpu_events_total{event=\"reset_required\"} 0\n"
            "gpu_events_total{event=\"returned\"} 0\n"
            "gpu_partition_info{partition=\"1g.10gb:3\",profile=\"1g.10gb\",gpu_instance=\"3\",mig_uuid="
            "\"MIG-new\"} 1\n"
            "gpu_partition_memory_used_bytes{partition=\"1g.10gb:3\",memory=\"vram\"} 10\n");
  EXPECT_EQ(driver.violations(), "");
}

TEST(NvidiaMig, CountersOfOneThatIsMadeAnewBeginAnew) {
  FakeDriver driver(kMadeAnew);
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  gpu.pass(Tier::fast, 1, 1);
  EXPECT_EQ(gpu.lines({"gpu_partition_busy"}),
            "gpu_partition_busy_seconds_total{partition=\"1g.10gb:3\"} 0.5\n");
  EXPECT_EQ(gpu.pass(Tier::normal, 5, 1), PassOutcome::gone);
  gpu.attach(6).sampled(6);
  EXPECT_EQ(gpu.lines({"gpu_partition_busy"}),
            "gpu_partition_busy_seconds_total{partition=\"1g.10gb:3\"} 0\n");
}

TEST(NvidiaMig, SevenInstancesAreAllThere) {
  FakeDriver driver("include: fixtures/h200_mig7.yaml");
  NvidiaGpu gpu(driver, "GPU-c2000000-0000-4000-8000-000000000000");
  gpu.attach().sampled();
  std::string expected;
  for (const char* id : {"10", "11", "12", "13", "7", "8", "9"}) {
    expected += std::string("gpu_partition_memory_size_bytes{partition=\"1g.18gb:") + id +
                "\",memory=\"vram\"} " + "17179869184\n";
  }
  EXPECT_EQ(gpu.lines({"gpu_partition_memory_size"}), expected);
  EXPECT_EQ(gpu.lines({"gpu_utilization"}), "");  // the driver has none of a divided GPU
  gpu.page().release();
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver.violations(), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
