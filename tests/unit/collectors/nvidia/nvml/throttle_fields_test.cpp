#include <gtest/gtest.h>

#include "collectors/nvidia/nvml/by_driver.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

TEST(ThrottleFields, HadOtherIdsInTwoBranches) {
  for (const char* driver : {"575.51.03", "575.64.05", "580.65.06"}) {
    EXPECT_EQ(throttle_field(269, driver), 251U) << driver;
    EXPECT_EQ(throttle_field(271, driver), 253U) << driver;
    EXPECT_EQ(throttle_field(74, driver), 74U) << driver;
  }
  EXPECT_EQ(throttle_field(269, "580.76.05"), 0U);
  EXPECT_EQ(throttle_field(74, "580.76.05"), 74U);
  for (const char* driver : {"", "570.124.06", "580.82.07", "580.95.05", "595.71.05"})
    EXPECT_EQ(throttle_field(270, driver), 270U) << driver;
}

constexpr const char* kScenario = R"(
devices:
  - uuid: GPU-0
    clocks: {reasons: [], supported_reasons: [sw_thermal]}
    fields:
      251: {value: {rate: 500 ms}, type: ulonglong}
      269: 3
system: {driver_version: )";

constexpr const char* kSeries = "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"sw_thermal\"} ";

TEST(ThrottleFields, TheCounterOfADriverOfThatTimeIsRead) {
  FakeDriver driver(std::string(kScenario) + "575.57.08}\n");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 10);
  EXPECT_EQ(gpu.lines({"gpu_throttle_reason_seconds"}), std::string(kSeries) + "5\n");
}

}  // namespace
}  // namespace gpumeter::nvidia
