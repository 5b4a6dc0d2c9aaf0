#include "collectors/simulated/collector.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "tests/unit/collectors/simulated/bench.hpp"

namespace gpumeter::simulated {
namespace {

using namespace std::chrono_literals;

TEST(SimulatedCollector, SaysWhatItsDevicesAre) {
  FakeClock clock;
  const auto collector = std::move(*open_simulated({"", "", &clock, {{"devices", {"3"}}, {"seed", {"9"}}}}));
  const Discovery found = *collector->discover();
  DeviceInfo last;
  last.uuid = "SIM-9-2";
  last.vendor = "simulated";
  last.model = "Simulated GPU";
  last.serial = "serial-of-SIM-9-2";
  last.driver = last.driver_version = last.vbios_version = "simulated";
  last.firmware_version = last.architecture = "simulated";
  last.vendor_index = last.source = "2";
  last.compute_units = 132;
  ASSERT_EQ(found.devices.size(), 3U);
  EXPECT_EQ(found.devices[2], last);
  EXPECT_EQ(found.notes, std::vector<std::string>{"these GPUs are simulated: their numbers are made up"});
}

TEST(SimulatedCollector, RefusesABadOption) {
  FakeClock clock;
  const auto opened = open_simulated({"", "", &clock, {{"duty", {"2"}}}});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message(), R"(collectors.simulated.duty: must be a number from 0 to 1, not "2")");
}

TEST(SimulatedCollector, CountersOfHundredPeriodsEqualTheTruth) {
  for (std::size_t device = 0; device < 4; ++device) {
    Bench bench(Options{{"devices", {"4"}}}, device);
    bench.pass_all();
    bench.run(730s);
    const double busy = 730 * 0.37, energy = 730 * (90 + (420 - 90) * 0.37);
    EXPECT_NEAR(bench.value("gpu_busy_seconds_total"), busy, busy * 1e-3);
    EXPECT_NEAR(bench.value("gpu_energy_joules_total"), energy, energy * 1e-3);
    EXPECT_NEAR(bench.value("gpu_engine_busy_seconds_total engine=copy"), 0.2 * busy, busy * 1e-3);
    EXPECT_NEAR(bench.value("gpu_pcie_received_bytes_total"), busy * 8e9, busy * 8e6);
    EXPECT_EQ(bench.value("gpu_power_max_watts window=1m"), 420);
    EXPECT_EQ(bench.value("gpu_power_min_watts window=1m"), 90);
  }
}

TEST(SimulatedCollector, TheSameOptionsGiveTheSameNumbers) {
  const auto energy = [](const Options& options) {
    Bench bench(options);
    bench.run(33s);
    return bench.value("gpu_energy_joules_total");
  };
  EXPECT_EQ(energy({}), energy({}));
  EXPECT_NE(energy({}), energy({{"seed", {"2"}}}));
}

TEST(SimulatedCollector, ThrottledTimeIsCountedByCauseAndReason) {
  Bench bench(Options{{"events", {"throttle 0 after 10s for 20s", "overheat 0 after 50s for 10s"}}});
  bench.run(100s);
  EXPECT_EQ(bench.value("gpu_throttle_seconds_total cause=power"), 20);
  EXPECT_EQ(bench.value("gpu_throttle_reason_seconds_total cause=power reason=sw_power_cap"), 20);
  EXPECT_EQ(bench.value("gpu_throttle_seconds_total cause=thermal"), 11);  // still hot when the event ends
  EXPECT_EQ(bench.value("gpu_throttle_reason_seconds_total cause=thermal reason=sw_thermal"), 10);
  EXPECT_EQ(bench.value("gpu_throttle_reason_seconds_total cause=thermal reason=hw_thermal"), 8);
  EXPECT_EQ(bench.value("gpu_throttle_seconds_total cause=hardware"), 0);
  EXPECT_EQ(bench.value("gpu_throttled cause=power"), 0);
}

TEST(SimulatedCollector, AnOverheatingDeviceHasANegativeMargin) {
  Bench bench(Options{{"events", {"overheat 0 after 10s for 20s"}}});
  bench.run(29s);
  EXPECT_EQ(bench.value("gpu_temperature_celsius sensor=core"), 94);
  EXPECT_EQ(bench.value("gpu_temperature_margin_celsius sensor=core"), -4);
  EXPECT_EQ(bench.value("gpu_throttled cause=thermal"), 1);
}

TEST(SimulatedCollector, AHungDeviceDoesNotReturnUntilItsTimeIsOver) {
  Bench bench(Options{{"events", {"hang 0 after 5s for 60s"}}});
  bench.run(4s);
  bench.clock.advance(1s);
  auto hung = std::async(std::launch::async, [&] { return bench.pass(Tier::fast, 1s); });
  EXPECT_EQ(hung.wait_for(60ms), std::future_status::timeout);
  bench.clock.advance(59s);
  EXPECT_EQ(hung.wait_for(60ms), std::future_status::timeout);
  bench.clock.advance(1s);
  EXPECT_EQ(hung.get(), PassOutcome::complete);
  EXPECT_EQ(bench.pass(Tier::normal), PassOutcome::complete);
  EXPECT_EQ(bench.value("gpu_xid_errors_total xid=119"), 1);
}

TEST(SimulatedCollector, AHungDeviceHoldsUpNeitherDiscoveryNorOthers) {
  Bench bench(Options{{"events", {"hang 1 after 5s for 60s"}}});
  bench.run(6s);
  EXPECT_EQ(bench.listed(), (std::vector<std::string>{"SIM-1-0", "SIM-1-1"}));
}

TEST(SimulatedCollector, ALostDeviceIsGoneAndItsCountersGoOnWhenItReturns) {
  Bench bench(Options{{"events", {"lose 0 after 100s for 10s"}}});
  bench.pass_all();
  bench.run(99s);
  const double energy = bench.value("gpu_energy_joules_total");
  bench.clock.advance(1s);
  EXPECT_EQ(bench.pass(Tier::fast, 1s), PassOutcome::gone);
  EXPECT_EQ(bench.listed(), std::vector<std::string>{"SIM-1-1"});
  EXPECT_EQ(bench.device->attach(bench.info).error().message(), "SIM-1-0: lost by a simulated event");

  bench.clock.advance(10s);
  EXPECT_EQ(bench.listed(), (std::vector<std::string>{"SIM-1-0", "SIM-1-1"}));
  ASSERT_TRUE(bench.attach());
  bench.pass_all();
  EXPECT_EQ(bench.value("gpu_energy_joules_total"), energy);
  EXPECT_EQ(bench.value("gpu_events_total event=bus_lost"), 1);
  EXPECT_EQ(bench.value("gpu_events_total event=returned"), 1);
  EXPECT_EQ(bench.value("gpu_xid_errors_total xid=79"), 1);
  EXPECT_EQ(bench.value("gpu_xid_last_timestamp_seconds xid=79"), to_seconds(FakeClock::kEpoch + 100s));
}

TEST(SimulatedCollector, ADeviceLostForGoodDoesNotReturn) {
  Bench bench(Options{{"events", {"lose 0 after 1s"}}});
  bench.clock.advance(24h);
  EXPECT_EQ(bench.pass(Tier::fast), PassOutcome::gone);
  EXPECT_EQ(bench.listed(), std::vector<std::string>{"SIM-1-1"});
}

}  // namespace
}  // namespace gpumeter::simulated
