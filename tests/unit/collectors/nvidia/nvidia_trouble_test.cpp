#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// Errors of single values: who is absent, who leaves for a while, and whose counter stays.

namespace gpumeter::nvidia {
namespace {

constexpr auto kEnergyAndPower = std::array<std::string_view, 2>{"gpu_energy", "gpu_power_watts"};

std::string power_of(const NvidiaGpu& gpu) {
  return gpu.lines({kEnergyAndPower.begin(), kEnergyAndPower.end()});
}

std::string draw(const std::string& value) {
  return "devices: [{uuid: GPU-0, power: {draw: " + value + "}}]";
}

TEST(NvidiaTrouble, WhatIsNotSupportedOrNotAllowedIsAbsent) {
  for (const std::string error :
       {"not_supported", "no_permission", "function_not_found", "invalid_argument"}) {
    FakeDriver driver("devices: [{uuid: GPU-0, power: {draw: {error: " + error +
                      "}}, fields: {82: {error: " + error + "}}, temperature: {gpu: 50}}]");
    NvidiaGpu gpu(driver);
    EXPECT_EQ(gpu.attach().sampled(), "gpu_temperature_celsius{sensor=\"core\"} 50\n") << error;
    const auto before = driver.calls("nvmlDeviceGetPowerUsage");
    gpu.pass(Tier::fast, 1, 1);
    EXPECT_EQ(driver.calls("nvmlDeviceGetPowerUsage"), before) << error;
  }
}

class ForAMoment : public testing::TestWithParam<const char*> {};

TEST_P(ForAMoment, TheGaugeLeavesAndTheCounterStays) {
  FakeDriver driver(draw(std::string("{steps: [[0, 100 W], [5, {error: ") + GetParam() + "}], [6, 100 W]]}"));
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 4);
  EXPECT_EQ(power_of(gpu), "gpu_energy_joules_total 400\ngpu_power_watts 100\n");
  EXPECT_EQ(gpu.pass(Tier::fast, 5, 1), PassOutcome::unread);
  EXPECT_EQ(power_of(gpu), "gpu_energy_joules_total 400\n");
  gpu.pass(Tier::fast, 6, 2);  // since the last complete pass
  EXPECT_EQ(power_of(gpu), "gpu_energy_joules_total 600\ngpu_power_watts 100\n");
}

INSTANTIATE_TEST_SUITE_P(NvidiaTrouble, ForAMoment,
                         testing::Values("not_found", "unknown", "timeout", "no_data", "no_permission",
                                         "not_ready", "not_supported"),
                         [](const auto& test) { return std::string(test.param); });

TEST(NvidiaTrouble, AThirdMissInARowTakesTheCounterAway) {
  FakeDriver driver(draw("{steps: [[0, 100 W], [2, {error: unknown}], [5, 100 W]]}"));
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 3);
  EXPECT_EQ(power_of(gpu), "gpu_energy_joules_total 100\n");
  gpu.pass(Tier::fast, 4, 1);
  EXPECT_EQ(power_of(gpu), "");
  gpu.pass(Tier::fast, 5);
  EXPECT_EQ(power_of(gpu), "gpu_energy_joules_total 100\ngpu_power_watts 100\n");
}

TEST(NvidiaTrouble, ErrorsAreCountedByTheirKind) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    power: {draw: {steps: [[0, 1 W], [1, {error: timeout}]]}}
    clocks: {sm: {steps: [[0, 1], [1, {error: no_permission}]]}}
    fields: {82: {steps: [[0, 1], [1, {error: unknown}]]}, 186: {steps: [[0, 1], [1, {error: not_supported}]]}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 1);
  EXPECT_EQ(gpu.page().errors(ReadStatus::timeout), 1U);
  EXPECT_EQ(gpu.page().errors(ReadStatus::denied), 1U);
  EXPECT_EQ(gpu.page().errors(ReadStatus::failed), 1U);
  EXPECT_EQ(gpu.page().errors(ReadStatus::unsupported), 1U);  // of what it supported a second ago
  EXPECT_EQ(gpu.page().errors(ReadStatus::gone), 0U);
}

TEST(NvidiaTrouble, NonsenseIsNoValue) {
  FakeDriver driver(
      "devices: [{uuid: GPU-0, power: {draw: 4000000 W}, temperature: {gpu: 255}, fields: {82: 0}}]");
  NvidiaGpu gpu(driver);
  EXPECT_EQ(gpu.attach().sampled(), "");
  EXPECT_EQ(gpu.page().errors(ReadStatus::out_of_range), 2U);
}

TEST(NvidiaTrouble, APowerBufferThatFailsLeavesTheReading) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    power: {draw: 100 W}
    samples: {power: {period_ms: 20, capacity: 120, value: 100 W}}
    errors: {nvmlDeviceGetSamples: {steps: [[0, ok], [3, {error: unknown}], [5, ok]]}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach(1).run(1, 7);
  EXPECT_EQ(power_of(gpu), "gpu_energy_joules_total 600\ngpu_power_watts 100\n");
}

}  // namespace
}  // namespace gpumeter::nvidia
