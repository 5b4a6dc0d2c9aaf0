#include "collectors/simulated/collector.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_procfs.hpp"
#include "tests/unit/collectors/simulated/bench.hpp"

namespace gpumeter::simulated {
namespace {

using namespace std::chrono_literals;

std::string error_of(const std::string& key, const std::string& value) {
  const auto read = read_settings({{key, {value}}});
  const auto* const problem = std::get_if<OptionProblem>(&read);
  return problem == nullptr ? "no error" : problem->key + ": " + problem->text;
}

void expect_same(const Settings& got, const Settings& want) {
  EXPECT_EQ(got.devices, want.devices);
  EXPECT_EQ(got.seed, want.seed);
  EXPECT_EQ(got.workload.period, want.workload.period);
  EXPECT_EQ(got.workload.duty, want.workload.duty);
  EXPECT_EQ(got.workload.idle_watts, want.workload.idle_watts);
  EXPECT_EQ(got.workload.busy_watts, want.workload.busy_watts);
  EXPECT_EQ(got.events.size(), want.events.size());
}

TEST(SimulatedOptions, NothingGivenIsTheDefaults) {
  expect_same(std::get<Settings>(read_settings({})), Settings{});
}

TEST(SimulatedOptions, TheHelpKnowsTheMost) {
  EXPECT_EQ(kOptions[0].help, "Number of simulated GPUs, 1 to " + std::to_string(kMostDevices) + ".");
}

TEST(SimulatedOptions, EveryKeyIsTakenIn) {
  const auto settings =
      std::get<Settings>(read_settings({{"devices", {"8"}},
                                        {"seed", {"18446744073709551615"}},
                                        {"period", {"500ms"}},
                                        {"duty", {"1"}},
                                        {"idle_power", {"0"}},
                                        {"busy_power", {"700.5"}},
                                        {"events", {"hang 7 after 5s", "lose 0 after 1s for 2s"}},
                                        {"processes", {"7=4711", "*=/run/pids,busy=1"}}}));
  ASSERT_EQ(settings.processes.size(), 2U);
  EXPECT_EQ(settings.processes[0].pid, 4711);
  EXPECT_EQ(settings.processes[1].file, "/run/pids");
  expect_same(settings, {8, UINT64_MAX, {500ms, 1, 0, 700.5}, {Event{}, Event{}}});
  EXPECT_EQ(settings.events[0].device, 7);
  EXPECT_EQ(settings.events[1].end, Nanoseconds(3s));
}

TEST(SimulatedOptions, AnErrorNamesTheKeyAndWhatWouldBeRight) {
  EXPECT_EQ(error_of("devices", "0"), R"(devices: must be a whole number from 1 to 1024, not "0")");
  EXPECT_EQ(error_of("devices", "2.5"), R"(devices: must be a whole number from 1 to 1024, not "2.5")");
  EXPECT_EQ(error_of("seed", "-1"), R"(seed: must be a whole number, 0 or more, not "-1")");
  EXPECT_EQ(error_of("period", "0s"), R"(period: must be 1ms or more, not "0s")");
  EXPECT_EQ(error_of("duty", "1.1"), R"(duty: must be a number from 0 to 1, not "1.1")");
  EXPECT_EQ(error_of("duty", "nan"), R"(duty: must be a number from 0 to 1, not "nan")");
  EXPECT_EQ(error_of("idle_power", "-1"), R"(idle_power: must be watts from 0 to 1000000, not "-1")");
  EXPECT_EQ(error_of("busy_power", "89"),
            R"(busy_power: must be watts from idle_power to 1000000, not "89")");
  EXPECT_EQ(error_of("events", "hang 2 after 5s"),
            R"(events: event "hang 2 after 5s": no device "2"; must be 0 to 1)");
  EXPECT_EQ(error_of("processes", "2=7"),
            R"(processes: "2=7": no device "2"; must be * or a number below 2)");
}

std::string error_of(const std::string& text) {
  const auto option = parse_process_option(text, 2);
  return option ? "no error" : option.error().message();
}

TEST(ProcessOption, TakesAPidOrAFile) {
  const auto pid = parse_process_option("1=4711", 2);
  EXPECT_EQ(pid->device, 1);
  EXPECT_EQ(pid->pid, 4711);
  EXPECT_EQ(pid->busy, std::nullopt);
  EXPECT_EQ(pid->memory_bytes, std::nullopt);
  const auto file = parse_process_option("*=/run/a=b.pids,memory=512MiB,busy=0.5", 2);
  EXPECT_EQ(file->device, std::nullopt);
  EXPECT_EQ(file->pid, 0);
  EXPECT_EQ(file->file, "/run/a=b.pids");
  EXPECT_EQ(file->busy, 0.5);
  EXPECT_EQ(file->memory_bytes, 512.0 * 1024 * 1024);
}

TEST(ProcessOption, TakesMemoryInBytesAndTheirMultiples) {
  const auto memory = [](const std::string& text) {
    return parse_process_option("0=1,memory=" + text, 1)->memory_bytes;
  };
  EXPECT_EQ(memory("0"), 0);
  EXPECT_EQ(memory("1000"), 1000);
  EXPECT_EQ(memory("1KiB"), 1024);
  EXPECT_EQ(memory("1.5GiB"), 1610612736);
}

TEST(ProcessOption, AnErrorNamesTheTextAndWhatWouldBeRight) {
  const std::string form =
      R"(: must be "GPU=WHO[,busy=RATIO][,memory=BYTES]", such as "0=/run/pids,busy=0.5,memory=2GiB")";
  for (const char* text : {"", "0", "0=", "=7", "0=7,", "0=7,speed=1", "0=7,busy=1,busy=1", "0=7,,"}) {
    EXPECT_EQ(error_of(text), '"' + std::string(text) + '"' + form);
  }
  EXPECT_EQ(error_of("2=7"), R"("2=7": no device "2"; must be * or a number below 2)");
  EXPECT_EQ(error_of("-1=7"), R"("-1=7": no device "-1"; must be * or a number below 2)");
  EXPECT_EQ(error_of("0=0"), R"("0=0": "0" is neither a pid nor an absolute path)");
  EXPECT_EQ(error_of("0=run/x"), R"("0=run/x": "run/x" is neither a pid nor an absolute path)");
  for (const char* busy : {"", "-0.1", "1.1", "nan", "half"}) {
    EXPECT_EQ(
        error_of("0=7,busy=" + std::string(busy)),
        "\"0=7,busy=" + std::string(busy) + "\": busy must be a number from 0 to 1, not \"" + busy + '"');
  }
  for (const char* memory : {"", "GiB", "-1", "nan", "inf", "2GB", "2000000GiB"}) {
    EXPECT_EQ(error_of("0=7,memory=" + std::string(memory)),
              "\"0=7,memory=" + std::string(memory) +
                  "\": memory must be bytes, or a number with KiB, MiB or GiB, not \"" + memory + '"');
  }
}

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
namespace {

using namespace std::chrono_literals;

class ProcessesTest : public testing::Test {
 protected:
  using List = std::vector<DeviceProcess>;

  Processes on(int device, const std::vector<std::string>& options) {
    Settings settings;
    settings.workload = {10s, 0.5, 90, 420};
    for (const std::string& option : options) settings.processes.push_back(*parse_process_option(option, 2));
    simulation_ = std::make_shared<const Simulation>(settings, clock_, procfs_.path());
    return {simulation_, static_cast<std::size_t>(device)};
  }
  /// Returns the list after this much more time.
  List list(Processes& processes, Nanoseconds later) {
    clock_.advance(later);
    List out;
    processes.list(clock_.monotonic(), out);
    return out;
  }

  FakeClock clock_;
  FakeProcfs procfs_;
  Tree files_ = make_tree({});
  std::shared_ptr<const Simulation> simulation_;
};

TEST_F(ProcessesTest, AreThoseOfTheDeviceThatLive) {
  for (const int pid : {7, 8, 9}) procfs_.add(pid, "/a");
  procfs_.add(10, "/a", {.name = ") S ", .state = 'Z'});
  const std::vector<std::string> options = {
      "0=7,busy=0.25,memory=1KiB", "1=8,busy=0", "*=9,busy=1", "0=10,busy=1", "0=4711,busy=1", "*=7,busy=1"};
  Processes first = on(0, options);
  EXPECT_EQ(list(first, 2s), (List{{7, 1024, 0.5}, {9, std::nullopt, 2}}));
  EXPECT_EQ(list(first, 1s), (List{{7, 1024, 0.25}, {9, std::nullopt, 1}}));
  Processes second = on(1, options);
  EXPECT_EQ(list(second, 2s), (List{{8, std::nullopt, 0}, {9, std::nullopt, 2}, {7, std::nullopt, 2}}));
}

TEST_F(ProcessesTest, AreReadAnewFromTheirFile) {
  for (const int pid : {7, 8}) procfs_.add(pid, "/a");
  Processes processes = on(0, {"0=" + files_ / "pids" + ",busy=0.5"});
  EXPECT_EQ(list(processes, 1s), List{}) << "there is no such file";
  files_.write("pids", "7\n\n 8 \nx\n9x\n-1\n4711");
  EXPECT_EQ(list(processes, 1s), (List{{7, std::nullopt, 0.5}, {8, std::nullopt, 0.5}}));
  procfs_.end(7);
  EXPECT_EQ(list(processes, 1s), (List{{8, std::nullopt, 0.5}}));
  files_.write("pids", "");
  EXPECT_EQ(list(processes, 1s), List{});
  files_.write("pids", std::string(9000, '7'));
  EXPECT_EQ(list(processes, 1s), List{});
}

TEST_F(ProcessesTest, DoEqualPartsOfWhatTheDeviceDoes) {
  for (const int pid : {7, 8, 9}) procfs_.add(pid, "/a");
  Processes processes = on(0, {"0=7", "0=8", "0=9,busy=0.1"});
  const List listed = list(processes, 20s);  // two whole periods, half of them busy
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_NEAR(*listed[0].busy_seconds, 5, 1e-9);
  EXPECT_NEAR(*listed[1].busy_seconds, 5, 1e-9);
  EXPECT_NEAR(*listed[2].busy_seconds, 2, 1e-9);
}

}  // namespace
}  // namespace gpumeter::simulated
