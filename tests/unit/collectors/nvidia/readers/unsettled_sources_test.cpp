#include "collectors/nvidia/readers/unsettled_sources.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// Sources that answer UNKNOWN when the GPU is opened are neither lost nor retried forever.

namespace gpumeter::nvidia {
namespace {

std::string scenario(const std::string& keys) {
  return "devices: [{uuid: GPU-0, temperature: {gpu: 50}, " + keys + "}]";
}

constexpr auto kBanks = "remapped_rows: {banks: {max: 9, high: 0, partial: 0, low: 0, none: 0}}, errors: ";

// The header lists only SUCCESS and UNKNOWN, so a GPU without the histogram answers UNKNOWN.
TEST(Unsettled, AHistogramThatIsUnknownForEverIsLeftAlone) {
  FakeDriver driver(scenario(std::string(kBanks) + "{nvmlDeviceGetRowRemapperHistogram: {error: unknown}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.run_and_bind(0, 6), 1);  // without its rows
  EXPECT_EQ(gpu.lines({"gpu_row_remap"}), "");
  const auto asked = driver.calls("nvmlDeviceGetRowRemapperHistogram");
  const auto errors = gpu.page().errors(ReadStatus::failed);
  EXPECT_EQ(gpu.run_and_bind(7, 600), 0);
  for (int minute = 0; minute < 10; ++minute) gpu.pass(Tier::slow, 600 + minute * 60, 60);
  EXPECT_EQ(gpu.page().errors(ReadStatus::failed), errors);
  EXPECT_LE(driver.calls("nvmlDeviceGetRowRemapperHistogram") - asked, 40U);  // each row, ever more rarely
}

TEST(Unsettled, ASourceThatAnswersLaterIsOnThePage) {
  FakeDriver driver(
      scenario(std::string(kBanks) +
               "{nvmlDeviceGetRowRemapperHistogram: {steps: [[0, {error: unknown}], [20, ok]]}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.run_and_bind(0, 60), 2);  // without the rows, then with them
  EXPECT_EQ(gpu.lines({"gpu_row_remap_banks{availability=\"max"}),
            "gpu_row_remap_banks{availability=\"max\"} 9\n");
}

TEST(Unsettled, TheNextSourceOfTheSeriesHasItsTurn) {
  FakeDriver driver(scenario("power: {draw: 100 W, energy: {rate: 100000}}, fields: {83: {error: unknown}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "");
  EXPECT_EQ(gpu.run_and_bind(0, 20), 1);
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "gpu_energy_joules_total 2000\n");
}

TEST(Unsettled, OneThatAnswersAtTheNextLookStays) {
  FakeDriver driver(scenario("fields: {83: {steps: [[0, {error: timeout}], [1, 5000]]}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.run_and_bind(0, 20), 0);
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "gpu_energy_joules_total 5\n");
}

TEST(Unsettled, PerformanceMetricsThatFailAtAttachAreFoundLater) {
  for (const std::string function : {"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet"}) {
    FakeDriver driver(scenario("gpm: {supported: yes, metrics: {2: 50, 3: 25}}") + "\nerrors: {" + function +
                      ": {steps: [[0, {error: unknown}], [6, ok]]}}");
    NvidiaGpu gpu(driver);
    gpu.attach().sampled();
    EXPECT_EQ(gpu.lines({"gpu_compute"}), "") << function;
    EXPECT_EQ(gpu.run_and_bind(0, 20), 1) << function;
    EXPECT_EQ(gpu.lines({"gpu_compute_active_ratio", "gpu_compute_occupancy_ratio"}),
              "gpu_compute_active_ratio 0.5\ngpu_compute_occupancy_ratio 0.25\n")
        << function;
    EXPECT_EQ(driver.open().gpm_samples, 2U) << function;
  }
}

TEST(Unsettled, SampleBuffersThatFailAtAttachAreFoundLater) {
  FakeDriver driver(scenario(
      R"(utilization: {gpu: 40, memory: 0}, samples: {gpu: {period_ms: 100, capacity: 120, value: 80}},
    errors: {nvmlDeviceGetSamples: {steps: [[0, {error: unknown}], [6, ok]]}})"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  gpu.run_and_bind(0, 20);
  EXPECT_EQ(gpu.lines({"gpu_utilization_max"}), "gpu_utilization_max_ratio{window=\"1m\"} 0.8\n");
}

TEST(Unsettled, EventsInstancesAndLimitsThatFailAtAttachAreFoundLater) {
  FakeDriver driver(
      scenario(R"(supported_events: [xid], fields: {193: -8, 194: {steps: [[0, {error: unknown}], [6, -2]]}},
    mig: {mode: enabled, mode_pending: enabled, most: 1, instances: [{gi: 3, ci: 0, uuid: MIG-a, name: A MIG 1g.10gb}]},
    errors: {nvmlDeviceGetSupportedEventTypes: {steps: [[0, {error: timeout}], [6, ok]]},
             nvmlDeviceGetMigMode: {steps: [[0, {error: unknown}], [6, ok]]}})"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.lines({"gpu_partition_info"}), "");
  gpu.run_and_bind(0, 20);
  EXPECT_NE(gpu.lines({"gpu_partition_info"}), "");
  EXPECT_EQ(gpu.page().has_more(std::chrono::hours(1)), false);
}

// All rows are bound, so that the daemon notices the unread GPU and opens it again when it answers.
TEST(Unsettled, AGpuWhoseEveryCallFailsIsUnread) {
  FakeDriver driver(
      "devices: [{uuid: GPU-0, power: {draw: {error: unknown}}, temperature: {gpu: {error: timeout}}}]");
  NvidiaGpu gpu(driver);
  gpu.attach();
  EXPECT_EQ(gpu.pass(Tier::fast, 1), PassOutcome::unread);
}

}  // namespace
}  // namespace gpumeter::nvidia
