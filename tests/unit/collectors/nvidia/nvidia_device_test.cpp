#include <gtest/gtest.h>

#include <iostream>
#include <thread>

#include "tests/fakes/nvidia_gpu.hpp"

// A GPU, whole: what its driver says becomes exactly these lines.

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

TEST(NvidiaDevice, BusySecondsAreTheIntegralOfTheSamples) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    utilization: {gpu: {square: {period: 2, duty: 0.37, high: 100, low: 0}}, memory: 0}
    samples: {gpu: {period_ms: 20, capacity: 120, value: {same_as: utilization.gpu}}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach(1).run(1, 21);
  EXPECT_EQ(gpu.lines({"gpu_busy", "gpu_utilization_m"}),
            "gpu_busy_seconds_total 7.4\n"
            "gpu_utilization_max_ratio{window=\"1m\"} 1\n"
            "gpu_utilization_min_ratio{window=\"1m\"} 0\n");
}

TEST(NvidiaDevice, CyclesOfTheSmsAreSeconds) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    gpm:
      supported: yes
      metrics:
        2: 25
        248: {rate: 1980000000, from: 77}
        249: {integral_of: {square: {period: 2, duty: 0.25, high: 1980000000, low: 0}}, from: 33}
        250: {rate: 495000000}
)");
  NvidiaGpu gpu(driver);
  gpu.attach();
  for (int at = 0; at <= 4; ++at) {
    std::this_thread::sleep_for(std::chrono::milliseconds(115));  // the sampler goes by the real clock
    gpu.pass(Tier::fast, at, at == 0 ? 0 : 1);
  }
  EXPECT_EQ(gpu.lines({"gpu_"}),
            "gpu_compute_active_ratio 0.25\n"
            "gpu_compute_active_seconds_total 1\n"
            "gpu_events_total{event=\"bus_lost\"} 0\n"
            "gpu_events_total{event=\"reset_required\"} 0\n"
            "gpu_events_total{event=\"returned\"} 0\n"
            "gpu_pipe_active_seconds_total{pipe=\"tensor\"} 1\n");
}

TEST(NvidiaDevice, ThrottleCountersShowTheirUnit) {
  constexpr auto kThrottled = R"(
devices:
  - uuid: GPU-0
    clocks: {reasons: [sw_power_cap], supported_reasons: [sw_power_cap]}
    fields: {74: {rate: )";
  for (const auto* const rate : {"1000000", "1000000000"}) {  // microseconds, nanoseconds
    FakeDriver driver(std::string(kThrottled) + rate + "}}\n");
    NvidiaGpu gpu(driver);
    gpu.attach().run(0, 5);
    EXPECT_EQ(gpu.lines({"gpu_throttle_seconds", "gpu_throttled"}),
              "gpu_throttle_seconds_total{cause=\"power\"} 5\n"
              "gpu_throttled{cause=\"power\"} 1\n");
  }
}

TEST(NvidiaDevice, AskedForFieldsAreOneCallAPass) {
  FakeDriver driver("include: fixtures/h100_8.yaml");
  NvidiaGpu gpu(driver, "GPU-a1000000-0000-4000-8000-000000000000");
  gpu.attach();
  for (const Tier tier : {Tier::fast, Tier::normal, Tier::slow}) {
    gpu.pass(tier, 1);
    const auto before = driver.calls("nvmlDeviceGetFieldValues");
    gpu.pass(tier, 2, 1);
    EXPECT_EQ(driver.calls("nvmlDeviceGetFieldValues") - before, tier == Tier::normal ? 0U : 1U);
  }
}

TEST(NvidiaDevice, StaysWithinTheBudgetOfCalls) {
  constexpr std::uint64_t kMost = 25;  // a second and GPU, the budget of NVML calls
  FakeDriver driver("include: fixtures/h100_8.yaml");
  NvidiaGpu gpu(driver, "GPU-a1000000-0000-4000-8000-000000000000");
  gpu.attach();
  std::array<std::uint64_t, 3> calls{};
  for (const Tier tier : {Tier::fast, Tier::normal, Tier::slow}) {
    gpu.pass(tier, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(115));
    const auto before = driver.calls();
    gpu.pass(tier, 2, 1);
    calls[static_cast<std::size_t>(tier)] = driver.calls() - before;
  }
  std::cout << "calls a pass: fast " << calls[0] << ", normal " << calls[1] << ", slow " << calls[2] << "\n";
  EXPECT_LE(calls[0], kMost);
  EXPECT_LE(60 * calls[0] + 6 * calls[1] + calls[2], 60 * kMost);
  EXPECT_EQ(driver.violations(), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
