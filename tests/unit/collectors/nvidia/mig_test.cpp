#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"
#include "tests/fakes/real_clock.hpp"

// The instances of a divided GPU, and a change of the division.

namespace gpumeter::nvidia {
namespace {

// At 5 s the instance is created again: the same id, another uuid.
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

TEST(NvidiaMig, ACallThatFailsForAPassIsNoNewDivision) {
  for (const std::string call : {"nvmlDeviceGetMigMode", "nvmlDeviceGetUUID"}) {
    FakeDriver driver("errors: {" + call + ": {steps: [[0, ok], [2, {error: unknown}], [4, ok]]}}" +
                      kMadeAnew);
    NvidiaGpu gpu(driver);
    gpu.attach().sampled();
    EXPECT_NE(gpu.pass(Tier::normal, 2, 1), PassOutcome::gone) << call;
    EXPECT_NE(gpu.pass(Tier::normal, 4, 1), PassOutcome::gone) << call;
    EXPECT_EQ(gpu.pass(Tier::normal, 5, 1), PassOutcome::gone) << call;
  }
}

TEST(NvidiaMig, ALossThatIsSeenWhileTheInstancesAreListedIsCounted) {
  FakeDriver driver(
      std::string("errors: {nvmlDeviceGetMigMode: {steps: [[0, ok], [2, {error: gpu_is_lost}], [3, ok]]}}") +
      kMadeAnew);
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.pass(Tier::normal, 2, 1), PassOutcome::gone);
  gpu.attach(3).sampled(3);
  EXPECT_EQ(gpu.lines({"gpu_events_total{event=\"bus_lost\"}"}), "gpu_events_total{event=\"bus_lost\"} 1\n");
}

// The driver reports a changed division at 2 s, long before the next look at the instances.
constexpr auto kDividedLater = R"(
devices:
  - uuid: GPU-0
    temperature: {gpu: 50}
    supported_events: [xid, mig_config_change]
    mig:
      mode: {steps: [[0, disabled], [2, enabled]]}
      mode_pending: enabled
      most: 7
      instances:
        - {index: 0, gi: 3, ci: 0, uuid: MIG-a, name: A MIG 1g.10gb, present: {steps: [[0, no], [2, yes]]},
           memory: {total: 100, reserved: 0, used: 40, free: 60}}
events: [{at: 2, device: 0, type: mig_config_change}]
)";

TEST(NvidiaMig, ADivisionThatTheDriverReportsIsAttachedAtTheNextPass) {
  FakeDriver driver(kDividedLater);
  NvidiaGpu gpu(driver);
  gpu.attach();
  const auto session = *NvmlSession::shared(driver.library());
  session->listener().wait(std::chrono::milliseconds(1), kRealClock);
  EXPECT_EQ(gpu.pass(Tier::fast, 1, 1), PassOutcome::complete);
  EXPECT_NE(gpu.pass(Tier::normal, 2, 1), PassOutcome::gone);  // not divided at attach, and no event yet
  session->listener().wait(std::chrono::seconds(1), kRealClock);
  EXPECT_EQ(gpu.pass(Tier::fast, 2, 1), PassOutcome::gone);
  gpu.attach(3).sampled(3);
  EXPECT_EQ(gpu.lines({"gpu_partition_info"}),
            "gpu_partition_info{partition=\"1g.10gb:3\",profile=\"1g.10gb\",gpu_instance=\"3\",mig_uuid="
            "\"MIG-a\"} 1\n");
  EXPECT_EQ(gpu.pass(Tier::fast, 4, 1), PassOutcome::complete);  // the event is handled once
}

constexpr auto kEnginesAndErrors = R"(
devices:
  - uuid: GPU-0
    gpm: {supported: yes, metrics: {2: 70}}
    mig:
      mode: enabled
      mode_pending: enabled
      most: 7
      instances:
        - {index: 0, gi: 3, ci: 0, uuid: MIG-a, name: A MIG 2g.20gb, gpm: {supported: yes, metrics: {30: 50, 31: 10, 40: 8}},
           ecc: {uncorrected: {volatile: {sram: 2}}}}
        - {index: 1, gi: 4, ci: 0, uuid: MIG-b, name: A MIG 1g.10gb, ecc: {uncorrected: {volatile: {l1: 1, l2: 3, dram: 9}}}}
)";

TEST(NvidiaMig, AnInstanceHasItsEnginesAndItsErrorsOfSram) {
  FakeDriver driver(kEnginesAndErrors);
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.lines({"gpu_partition_engine_utilization", "gpu_partition_memory_errors"}),
            "gpu_partition_engine_utilization_ratio{partition=\"2g.20gb:3\",engine=\"decode\"} 0.3\n"
            "gpu_partition_engine_utilization_ratio{partition=\"2g.20gb:3\",engine=\"jpeg\"} 0.08\n"
            "gpu_partition_memory_errors_total{partition=\"1g.10gb:4\",severity=\"uncorrected\",location="
            "\"l1\"} 1\n"
            "gpu_partition_memory_errors_total{partition=\"1g.10gb:4\",severity=\"uncorrected\",location="
            "\"l2\"} 3\n"
            "gpu_partition_memory_errors_total{partition=\"2g.20gb:3\",severity=\"uncorrected\",location="
            "\"sram\"} 2\n");
}

constexpr auto kTwoParts = R"(
devices:
  - uuid: GPU-0
    temperature: {gpu: 50}
    supported_events: [xid]
    mig:
      mode: enabled
      mode_pending: enabled
      most: 7
      instances:
        - {index: 0, gi: 1, ci: 0, uuid: MIG-a, name: A MIG 1c.3g.71gb, memory: {total: 100, reserved: 0, used: 40, free: 60},
           attributes: {multiprocessors: 16, copy_engines: 3, decoders: 3, encoders: 0, jpegs: 3, ofas: 0, gpu_slices: 3, compute_slices: 1, memory: 71680 MiB}}
        - {index: 1, gi: 1, ci: 1, uuid: MIG-b, name: A MIG 2c.3g.71gb, memory: {total: 100, reserved: 0, used: 40, free: 60},
           attributes: {multiprocessors: 32, copy_engines: 3, decoders: 3, encoders: 0, jpegs: 3, ofas: 0, gpu_slices: 3, compute_slices: 2, memory: 71680 MiB}}
events:
  - {at: 1, device: 0, type: xid, data: 31, gi: 1, ci: 1}
  - {at: 1, device: 0, type: xid, data: 79}
  - {at: 1, device: 0, type: xid, data: 8, gi: 1}
)";

TEST(NvidiaMig, EachPartOfAnInstanceHasItsOwnFacts) {
  FakeDriver driver(kTwoParts);
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.lines({"gpu_partition_info", "gpu_partition_memory_used"}),
            "gpu_partition_info{partition=\"3g.71gb:1\",profile=\"3g.71gb\",gpu_instance=\"1\","
            "compute_instance=\"0\",mig_uuid=\"MIG-a\",compute_units=\"16\"} 1\n"
            "gpu_partition_info{partition=\"3g.71gb:1\",profile=\"3g.71gb\",gpu_instance=\"1\","
            "compute_instance=\"1\",mig_uuid=\"MIG-b\",compute_units=\"32\"} 1\n"
            "gpu_partition_memory_used_bytes{partition=\"3g.71gb:1\",memory=\"vram\"} 40\n");
}

TEST(NvidiaMig, XidsOfAnInstanceAreItsOwnTooAndTheGpusAllTheSame) {
  FakeDriver driver(kTwoParts);
  NvidiaGpu gpu(driver);
  gpu.attach();
  const auto reported = [&] {
    const auto session = *NvmlSession::shared(driver.library());
    std::string text;
    for (const DeviceEvent& event : session->listener().wait(std::chrono::milliseconds(1), kRealClock).events)
      text += event.kind + "\n";
    return text;
  };
  EXPECT_EQ(reported(), "");
  driver.set_time(2);
  EXPECT_EQ(reported(), "xid 31 of GPU instance 1, compute instance 1\nxid 79\nxid 8 of GPU instance 1\n");
  gpu.pass(Tier::fast, 2, 1);
  const auto line = [](const std::string& xid, int count) {
    return "gpu_partition_xid_errors_total{partition=\"3g.71gb:1\",xid=\"" + xid + "\"} " +
           std::to_string(count) + "\n";
  };
  EXPECT_EQ(gpu.lines({"gpu_partition_xid"}), line("13", 0) + line("31", 1) + line("43", 0) + line("45", 0) +
                                                  line("68", 0) + line("69", 0) + line("94", 0) +
                                                  line("95", 0) + line("other", 1));
  EXPECT_EQ(gpu.lines({"gpu_xid_errors_total{xid=\"31\"}", "gpu_xid_errors_total{xid=\"79\"}",
                       "gpu_xid_errors_total{xid=\"8\"}"}),
            "gpu_xid_errors_total{xid=\"31\"} 1\ngpu_xid_errors_total{xid=\"79\"} "
            "1\ngpu_xid_errors_total{xid=\"8\"} 1\n");
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
  EXPECT_EQ(gpu.lines({"gpu_utilization"}), "");  // the driver reports none for a divided GPU
  gpu.page().release();
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver.violations(), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
