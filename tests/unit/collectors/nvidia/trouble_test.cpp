#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "tests/fakes/nvidia_gpu.hpp"
#include "tests/fakes/real_clock.hpp"

// Errors of single values: which values are absent, which leave for a while, and which counters stay.

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

TEST(NvidiaTrouble, EventsAreHeardOnWhileTheDriverCannotSayWhichItHas) {
  FakeDriver driver(R"(
devices: [{uuid: GPU-0, temperature: {gpu: 50}, supported_events: [xid]}]
errors: {nvmlDeviceGetSupportedEventTypes: {steps: [[0, ok], [1, {error: unknown}]]}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach();
  (*NvmlSession::shared(driver.library()))->listener().wait(std::chrono::milliseconds(1), kRealClock);
  gpu.attach(1).sampled(1);
  EXPECT_EQ(gpu.lines({"gpu_xid_errors_total{xid=\"31\"}"}), "gpu_xid_errors_total{xid=\"31\"} 0\n");
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
  EXPECT_EQ(gpu.page().errors(ReadStatus::unsupported), 1U);  // a value that was supported a second ago
  EXPECT_EQ(gpu.page().errors(ReadStatus::gone), 0U);
}

TEST(NvidiaTrouble, NonsenseIsNoValue) {
  FakeDriver driver(
      "devices: [{uuid: GPU-0, power: {draw: 4000000 W}, temperature: {gpu: 255}, fields: {82: 0}}]");
  NvidiaGpu gpu(driver);
  EXPECT_EQ(gpu.attach().sampled(), "");
  EXPECT_EQ(gpu.page().errors(ReadStatus::out_of_range), 2U);
}

class NoNumber : public testing::TestWithParam<const char*> {};

// From 2 s to 3 s the driver returns no number. The totals do not advance during this second (the fake means
// it as 0), and continue afterwards.
TEST_P(NoNumber, OfGpmIsOneFailedReadAndNoMore) {
  FakeDriver driver(std::string(R"(
devices:
  - uuid: GPU-0
    temperature: {gpu: 50}
    fields: {91: 18}
    gpm:
      supported: yes
      metrics:
        20: {steps: [[0, 100], [2, )") +
                    GetParam() + "], [3, 100]]}\n        61: {steps: [[0, 200], [2, " + GetParam() +
                    "], [3, 200]]}\n");
  NvidiaGpu gpu(driver);
  gpu.attach();
  for (int at = 0; at <= 5; ++at) {
    std::this_thread::sleep_for(std::chrono::milliseconds(115));  // the sampler uses the real clock
    gpu.pass(Tier::fast, at, at == 0 || at == 2 ? 0 : 1);
  }
  const std::string text = gpu.lines({"gpu_pcie_transmitted", "gpu_interconnect_transmitted"});
  EXPECT_EQ(gpu.page().errors(ReadStatus::out_of_range), 2U);
  EXPECT_EQ(text,
            "gpu_interconnect_transmitted_bytes_total{kind=\"nvlink\"} 629145600\n"
            "gpu_pcie_transmitted_bytes_total 314572800\n");
}

// A counter without a first reading cannot fail a pass, so only the sampler keeps the value out of the total.
TEST_P(NoNumber, OfGpmInTheFirstPassIsForgottenToo) {
  FakeDriver driver(std::string(R"(
devices:
  - uuid: GPU-0
    temperature: {gpu: 50}
    gpm: {supported: yes, metrics: {21: {steps: [[0, )") +
                    GetParam() + "], [2, 100]]}}}\n");
  NvidiaGpu gpu(driver);
  gpu.attach();
  for (int at = 0; at <= 4; ++at) {
    std::this_thread::sleep_for(std::chrono::milliseconds(115));
    gpu.pass(Tier::fast, at, at == 0 ? 0 : 1);
  }
  EXPECT_EQ(gpu.lines({"gpu_pcie_received"}), "gpu_pcie_received_bytes_total 209715200\n");
}

INSTANTIATE_TEST_SUITE_P(NvidiaTrouble, NoNumber, testing::Values("nan", "inf", "-100"));

TEST(NvidiaTrouble, ASampleThatIsNoNumberCostsTheBufferNothing) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    power: {draw: 100 W}
    fields: {83: {value: nan, type: double}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 1);
  EXPECT_EQ(gpu.page().errors(ReadStatus::out_of_range), 2U);
}

TEST(NvidiaTrouble, ARecoveryActionOfANewerDriverIsOther) {
  for (const auto& [said, holds] :
       {std::pair("0", "none"), std::pair("5", "recover_imex"), std::pair("6", "bus_reset"),
        std::pair("7", "system_reboot"), std::pair("8", "other")}) {
    FakeDriver driver(std::string("devices: [{uuid: GPU-0, fields: {230: ") + said + "}}]");
    NvidiaGpu gpu(driver);
    gpu.attach().sampled();
    std::string expected;
    for (const std::string action : {"bus_reset", "drain_and_reset", "drain_p2p", "none", "other", "reboot",
                                     "recover_imex", "reset", "system_reboot"})
      expected += "gpu_recovery_action{action=\"" + action + "\"} " + (action == holds ? "1" : "0") + "\n";
    EXPECT_EQ(gpu.lines({"gpu_recovery_action"}), expected);
  }
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
