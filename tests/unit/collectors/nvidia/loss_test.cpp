#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// A lost GPU, an unloaded driver, and the return of both.

namespace gpumeter::nvidia {
namespace {

constexpr auto kOneGpu = R"(
devices:
  - uuid: GPU-0
    power: {draw: 100 W}
    temperature: {gpu: 50}
    fields: {82: 60, 94: 3}
    gpm: {supported: yes, metrics: {2: 50}}
    supported_events: [xid]
    )";

std::string events_of(const NvidiaGpu& gpu) { return gpu.lines({"gpu_events_total"}); }
std::string events(int lost, int reset, int returned) {
  return "gpu_events_total{event=\"bus_lost\"} " + std::to_string(lost) +
         "\ngpu_events_total{event=\"reset_required\"} " + std::to_string(reset) +
         "\ngpu_events_total{event=\"returned\"} " + std::to_string(returned) + "\n";
}

std::string trouble_of(NvidiaGpu& gpu, double at) {
  try {
    gpu.attach(at);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(NvidiaLoss, NoCallIsMadeOnALostGpu) {
  FakeDriver driver(std::string(kOneGpu) + "lost: {from: 5, until: 12}\n");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 4);
  const auto before = driver.calls();
  EXPECT_EQ(gpu.pass(Tier::fast, 5, 1), PassOutcome::partial);  // the first call reports the loss
  EXPECT_LE(driver.calls() - before, 2U);                       // the GPM sampler detects it itself
  const auto then = driver.calls();
  EXPECT_EQ(gpu.pass(Tier::slow, 5.5, 1), PassOutcome::gone);
  EXPECT_EQ(driver.calls() - then, driver.calls("nvmlGpmSampleFree") + driver.calls("nvmlShutdown"));
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  const auto gone = driver.calls();
  EXPECT_EQ(gpu.pass(Tier::fast, 6, 1), PassOutcome::gone);
  EXPECT_EQ(driver.calls(), gone);
  EXPECT_EQ(driver.violations(), "");
}

TEST(NvidiaLoss, CountersGoOnWhenItIsBack) {
  FakeDriver driver(std::string(kOneGpu) + "lost: {from: 5, until: 12}\n");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 6);
  EXPECT_EQ(trouble_of(gpu, 8), driver.library() + " does not find GPU-0");
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  gpu.attach(12).run(12, 15);
  EXPECT_EQ(gpu.lines({"gpu_energy", "gpu_temperature_celsius{sensor=\"m"}),
            "gpu_energy_joules_total 700\n"  // 4 s before, 3 s after
            "gpu_temperature_celsius{sensor=\"memory\"} 60\n");
  EXPECT_EQ(events_of(gpu), events(1, 0, 1));
  EXPECT_EQ(driver.violations(), "");
}

TEST(NvidiaLoss, AGpuThatWantsAResetIsCountedAsThat) {
  FakeDriver driver(std::string(kOneGpu) + "reset_required: {from: 5, until: 12}\n");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 5);
  EXPECT_EQ(gpu.pass(Tier::fast, 6, 1), PassOutcome::gone);
  EXPECT_NE(trouble_of(gpu, 8), "");
  gpu.attach(12).run(12, 13);
  EXPECT_EQ(events_of(gpu), events(0, 1, 1));
}

TEST(NvidiaLoss, ALostGpuLeavesTheOthersTheirSession) {
  FakeDriver driver(
      "devices: [{uuid: GPU-0, power: {draw: 1 W}}, {uuid: GPU-1, power: {draw: 2 W}, lost: {from: 5}}]");
  NvidiaGpu well(driver, "GPU-0"), lost(driver, "GPU-1");
  well.attach();
  lost.attach();
  EXPECT_EQ(driver.open().inits, 1U);
  well.pass(Tier::fast, 5);
  lost.pass(Tier::fast, 5);
  EXPECT_EQ(lost.pass(Tier::fast, 6), PassOutcome::gone);
  EXPECT_EQ(well.pass(Tier::fast, 6, 1), PassOutcome::complete);
  EXPECT_EQ(well.lines({"gpu_power_watts"}), "gpu_power_watts 1\n");
  EXPECT_EQ(driver.open().inits, 1U);
}

// The driver is unloaded at 5 s and loaded again at 8 s. Freeing needs no driver.
constexpr auto kReload = R"(
errors: {all: {steps: [[0, ok], [5, {error: uninitialized}], [8, ok]]}, nvmlGpmSampleFree: ok, nvmlEventSetFree: ok}
devices: [{uuid: GPU-0, power: {draw: 1 W}, gpm: {supported: yes, metrics: {2: 5}}}, {uuid: GPU-1, power: {draw: 2 W}}]
)";

TEST(NvidiaLoss, ADriverThatGoesAwayIsLetGoByAllBeforeItIsTakenAnew) {
  FakeDriver driver(kReload);
  NvidiaGpu first(driver, "GPU-0"), second(driver, "GPU-1");
  first.attach().run(0, 4);
  second.attach(4).run(4, 4);
  first.pass(Tier::fast, 5, 1);  // detects the unload
  const auto before = driver.calls("nvmlDeviceGetPowerUsage");
  EXPECT_EQ(first.pass(Tier::fast, 6, 1), PassOutcome::gone);
  EXPECT_EQ(driver.open().inits, 1U);  // the second GPU still holds the driver
  EXPECT_EQ(trouble_of(first, 9), driver.library() +
                                      ": the driver was unloaded while calls were running in it; waiting for "
                                      "them to return");
  EXPECT_EQ(second.pass(Tier::fast, 9, 1), PassOutcome::gone);
  EXPECT_EQ(driver.calls("nvmlDeviceGetPowerUsage"), before);
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  first.attach(9).run(9, 11);
  second.attach(11);
  EXPECT_EQ(first.lines({"gpu_energy", "gpu_power_watts"}), "gpu_energy_joules_total 6\ngpu_power_watts 1\n");
  EXPECT_EQ(events_of(first), events(0, 0, 1));  // the bus is not involved
  EXPECT_EQ(driver.violations(), "");
}

TEST(NvidiaLoss, ReleaseGivesEverythingBackAndIsNoLoss) {
  FakeDriver driver(kOneGpu);
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 3);
  gpu.page().release();
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  gpu.attach(100).run(100, 102);
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "gpu_energy_joules_total 500\n");
  EXPECT_EQ(events_of(gpu), events(0, 0, 0));
  EXPECT_EQ(driver.violations(), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
