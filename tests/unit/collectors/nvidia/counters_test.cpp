#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <thread>

#include "tests/unit/collectors/nvidia/listed_gpu.hpp"

// Counters over several passes: seconds by samples, cycles and throttle counters, and the number of calls.

namespace gpumeter::nvidia {
namespace {

TEST(NvidiaCounters, BusySecondsAreTheIntegralOfTheSamples) {
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

TEST(NvidiaCounters, EnergyIsTheDriversOwnCountWithoutTheFieldToo) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    power: {draw: 100 W, energy: {rate: 120000, from: 5000}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach(0).run(0, 3);
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "gpu_energy_joules_total 365\n");
}

TEST(NvidiaCounters, CyclesOfTheSmsAreSeconds) {
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
    std::this_thread::sleep_for(std::chrono::milliseconds(115));  // the sampler uses the real clock
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

/// The counts of cycles after 5 s of a GPU with 132 multiprocessors that runs at 1 GHz, from second 3 on
/// at 1.25 GHz, and whose tensor cores have their peak at 2 GHz. A cycle is `unit` counts. `bound`: how often
/// it was bound again.
std::string cycles_of(long unit, int bound) {
  const auto counts = [unit](long mega) { return std::to_string(mega * unit * 1000000); };
  FakeDriver driver(
      "devices: [{uuid: GPU-0, compute_capability: '9.0', cores: 16896, "
      "clocks: {sm: {steps: [[0, 1000], [3, 1250]]}, max: {sm: 2000}}, gpm: {supported: yes, metrics: {"
      "5: 50, 251: {error: not_supported}, 252: nan, "
      "248: {integral_of: {steps: [[0, " +
      counts(1000) + "], [3, " + counts(1250) +
      "]]}, from: 77}, "
      "249: {rate: " +
      counts(600) +
      ", from: 33}, "
      "250: {integral_of: {steps: [[0, " +
      counts(500) + "], [3, " + counts(900) + "]]}}}}}]");
  NvidiaGpu gpu(driver);
  gpu.attach();
  for (int at = 0; at <= 5; ++at) {
    std::this_thread::sleep_for(std::chrono::milliseconds(115));  // the sampler uses the real clock
    gpu.pass(Tier::fast, at, at == 0 ? 0 : 1);
    if (!gpu.page().has_more(std::chrono::seconds(at))) continue;
    --bound;
    gpu.attach(at).pass(Tier::fast, at);
  }
  EXPECT_EQ(bound, 0);
  return gpu.lines({"gpu_cycles", "gpu_active_cycles", "gpu_pipe_cycles", "gpu_tensor"});
}

// The first second shows what a count is. Until then the tensor cores' half of 1 GHz is integrated.
TEST(NvidiaCounters, CyclesAreThoseOfOneMultiprocessorWhetherTheDriverAddsThemUpOrNot) {
  for (const long unit : {1L, 132L}) {
    EXPECT_EQ(cycles_of(unit, 1),
              "gpu_active_cycles_total 2.4e+09\n"
              "gpu_cycles_total 4.5e+09\n"
              "gpu_pipe_cycles_total{pipe=\"tensor\"} 2.8e+09\n"
              "gpu_tensor_peak_seconds_total 1.65\n")
        << unit;
  }
}

TEST(NvidiaCounters, CyclesOfAnUnknownUnitAreNotExported) {
  EXPECT_EQ(cycles_of(7, 0),
            "gpu_tensor_peak_seconds_total 1.4375\n");  // two seconds at 1 GHz, three at 1.25 GHz
}

// Each pass sees the bit of a cap that holds for 1 ms in 1 s. A counter of microseconds would grow as fast if
// the cap always held.
TEST(NvidiaCounters, ThrottleCountersAreNanosecondsHoweverSlowlyTheyGrow) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    clocks: {reasons: [sw_power_cap, sw_thermal], supported_reasons: [sw_power_cap, sw_thermal]}
    fields: {74: {rate: 1000000}, 75: {rate: 1000000000}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 5);
  EXPECT_EQ(gpu.lines({"gpu_throttle_seconds", "gpu_throttled"}),
            "gpu_throttle_seconds_total{cause=\"power\"} 0.005\n"
            "gpu_throttle_seconds_total{cause=\"thermal\"} 5\n"
            "gpu_throttled{cause=\"power\"} 1\n"
            "gpu_throttled{cause=\"thermal\"} 1\n");
}

constexpr auto kPcieBytes = "gpu_pcie_";

TEST(NvidiaCounters, PcieBytesThatWrapAt32BitsAreAbsentAndNoError) {
  FakeDriver driver(R"(
devices: [{uuid: GPU-0, temperature: {gpu: 50}, fields: {197: {rate: 1500000000, bits: 32}, 198: {rate: 900000000, bits: 32}}}]
)");
  NvidiaGpu gpu(driver);
  gpu.attach();
  for (int at = 0; at <= 12; ++at) {
    gpu.pass(Tier::fast, at, at == 0 ? 0 : 1);
    EXPECT_EQ(gpu.lines({kPcieBytes}), "") << at;
  }
  for (const ReadStatus status : {ReadStatus::unsupported, ReadStatus::failed, ReadStatus::out_of_range})
    EXPECT_EQ(gpu.page().errors(status), 0U);
}

TEST(NvidiaCounters, PcieBytesAreThereOnceOneOfThemWasAbove32Bits) {
  FakeDriver driver(R"(
devices: [{uuid: GPU-0, temperature: {gpu: 50}, fields: {197: {rate: 1000000}, 198: {rate: 2000000000}}}]
)");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 2);
  EXPECT_EQ(gpu.lines({kPcieBytes}), "");  // at most 4 000 000 000
  gpu.pass(Tier::fast, 3, 1);
  gpu.pass(Tier::fast, 4, 1);
  EXPECT_EQ(gpu.lines({kPcieBytes}),
            "gpu_pcie_received_bytes_total 8e+09\n"
            "gpu_pcie_transmitted_bytes_total 4e+06\n");
}

// The means between two samples are integrated: 25 % of the first second, 50 % of the second one.
TEST(NvidiaCounters, OccupancyAndBandwidthAreIntegratedOverObservedTime) {
  FakeDriver driver(R"(
devices:
  - uuid: GPU-0
    gpm: {supported: yes, metrics: {3: {steps: [[0, 25], [1, 50]]}, 10: {steps: [[0, 60], [1, 20]]}}}
)");
  NvidiaGpu gpu(driver);
  gpu.attach();
  for (int at = 0; at <= 2; ++at) {
    std::this_thread::sleep_for(std::chrono::milliseconds(115));  // the sampler uses the real clock
    gpu.pass(Tier::fast, at, at == 0 ? 0 : 1);
  }
  EXPECT_EQ(gpu.lines({"gpu_compute_occupancy", "gpu_memory_bandwidth"}),
            "gpu_compute_occupancy_ratio 0.5\n"
            "gpu_compute_occupancy_seconds_total 0.75\n"
            "gpu_memory_bandwidth_utilization_ratio 0.2\n"
            "gpu_memory_bandwidth_utilization_seconds_total 0.8\n");
}

TEST(NvidiaCounters, AskedForFieldsAreOneCallAPassAndOneForEachLink) {
  const std::map<Tier, unsigned> expected = {{Tier::fast, 1}, {Tier::normal, 0}, {Tier::slow, 1 + 18 + 1}};
  FakeDriver driver("include: fixtures/h100_8.yaml");
  NvidiaGpu gpu(driver, "GPU-a1000000-0000-4000-8000-000000000000");
  gpu.attach();
  for (const auto& [tier, calls] : expected) {
    gpu.pass(tier, 1);
    const auto before = driver.calls("nvmlDeviceGetFieldValues");
    gpu.pass(tier, 2, 1);
    // The driver says that there is no 19th link.
    EXPECT_EQ(driver.calls("nvmlDeviceGetFieldValues") - before, calls);
  }
}

TEST(NvidiaCounters, StaysWithinTheBudgetOfCalls) {
  constexpr std::uint64_t kMost = 25;  // per second and GPU: the budget of NVML calls
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
  ListedGpu listed(driver, "GPU-a1000000-0000-4000-8000-000000000000");
  for (const double at : {10, 20}) listed.asked(at, 10);
  const auto before = driver.calls();
  listed.asked(30, 10);
  const std::uint64_t processes = driver.calls() - before;
  std::cout << "calls a pass: fast " << calls[0] << ", normal " << calls[1] << " and " << processes
            << " for its processes, slow " << calls[2] << "\n";
  EXPECT_LE(calls[0], kMost);
  EXPECT_LE(60 * calls[0] + 6 * (calls[1] + processes) + calls[2], 60 * kMost);
  EXPECT_EQ(driver.violations(), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
