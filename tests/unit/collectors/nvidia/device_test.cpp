#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// A whole GPU: the driver's values give exactly these lines.

namespace gpumeter::nvidia {
namespace {

std::string sampled(const std::string& keys) {
  FakeDriver driver("devices: [{uuid: GPU-0, " + keys + "}]");
  NvidiaGpu gpu(driver);
  return gpu.attach().sampled();
}

TEST(NvidiaDevice, OneThatSaysNothingHasNothing) { EXPECT_EQ(sampled("name: GPU"), ""); }

TEST(NvidiaDevice, ValuesAreInBaseUnits) {
  EXPECT_EQ(sampled(R"(
    memory: {total: 1024 MiB, reserved: 24 MiB, used: 400 MiB, free: 600 MiB}, power: {draw: 61.5 W, limit: 70 W},
    temperature: {gpu: 53}, clocks: {graphics: 1980, max: {graphics: 2000}, pstate: P2},
    utilization: {gpu: 97, memory: 42}, fields: {82: 60, 83: 5500})"),
            "gpu_busy_seconds_total 0\n"
            "gpu_clock_hertz{clock=\"graphics\"} 1.98e+09\n"
            "gpu_clock_max_hertz{clock=\"graphics\"} 2e+09\n"
            "gpu_energy_joules_total 5.5\n"
            "gpu_memory_controller_busy_seconds_total 0\n"
            "gpu_memory_controller_utilization_ratio 0.42\n"
            "gpu_memory_free_bytes{memory=\"vram\"} 629145600\n"
            "gpu_memory_reserved_bytes{memory=\"vram\"} 25165824\n"
            "gpu_memory_size_bytes{memory=\"vram\"} 1073741824\n"
            "gpu_memory_used_bytes{memory=\"vram\"} 419430400\n"
            "gpu_performance_state 2\n"
            "gpu_power_limit_watts{limit=\"enforced\"} 70\n"
            "gpu_power_max_watts{window=\"1m\"} 61.5\n"
            "gpu_power_min_watts{window=\"1m\"} 61.5\n"
            "gpu_power_watts 61.5\n"
            "gpu_temperature_celsius{sensor=\"core\"} 53\n"
            "gpu_temperature_celsius{sensor=\"memory\"} 60\n"
            "gpu_utilization_max_ratio{window=\"1m\"} 0.97\n"
            "gpu_utilization_min_ratio{window=\"1m\"} 0.97\n"
            "gpu_utilization_ratio 0.97\n");
}

TEST(NvidiaDevice, SramCountedAsAWholeLeavesItsPartsOut) {
  constexpr auto kVolatile = "ecc: {corrected: {volatile: {dram: 2, l1: 5, l2: 7";
  EXPECT_EQ(sampled(std::string(kVolatile) + ", sram: 1}}}"),
            "gpu_memory_errors_total{severity=\"corrected\",location=\"dram\"} 2\n"
            "gpu_memory_errors_total{severity=\"corrected\",location=\"sram\"} 1\n");
  EXPECT_EQ(sampled(std::string(kVolatile) + "}}}"),
            "gpu_memory_errors_total{severity=\"corrected\",location=\"dram\"} 2\n"
            "gpu_memory_errors_total{severity=\"corrected\",location=\"l1\"} 5\n"
            "gpu_memory_errors_total{severity=\"corrected\",location=\"l2\"} 7\n");
}

TEST(NvidiaDevice, OffsetsToTheTLimitBecomeLimits) {
  EXPECT_EQ(sampled("temperature: {gpu: 53, margin: 24}, fields: {193: -8, 194: -2, 196: 0}"),
            "gpu_temperature_celsius{sensor=\"core\"} 53\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"max\"} 77\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"shutdown\"} 85\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"slowdown\"} 79\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 24\n");
}

TEST(NvidiaDevice, AbsoluteLimitsGiveTheMargin) {
  EXPECT_EQ(sampled("temperature: {gpu: 53, thresholds: {shutdown: 101, slowdown: 96, gpu_max: 90}}"),
            "gpu_temperature_celsius{sensor=\"core\"} 53\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"max\"} 90\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"shutdown\"} 101\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"slowdown\"} 96\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 37\n");
}

}  // namespace
}  // namespace gpumeter::nvidia
