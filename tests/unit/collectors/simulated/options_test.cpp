#include "collectors/simulated/options.hpp"

#include <gtest/gtest.h>

namespace gpumeter::simulated {
namespace {

using namespace std::chrono_literals;

std::string error_of(const std::string& key, const std::string& value) {
  const Result<Settings> settings = parse_settings({{key, {value}}});
  return settings ? "no error" : settings.error().message();
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

TEST(SimulatedOptions, NothingGivenIsTheDefaults) { expect_same(*parse_settings({}), Settings{}); }

TEST(SimulatedOptions, TheHelpKnowsTheMost) {
  EXPECT_EQ(kOptions[0].help, "Number of simulated GPUs, 1 to " + std::to_string(kMostDevices) + ".");
}

TEST(SimulatedOptions, EveryKeyIsTakenIn) {
  const Result<Settings> settings = parse_settings({{"devices", {"8"}},
                                                    {"seed", {"18446744073709551615"}},
                                                    {"period", {"500ms"}},
                                                    {"duty", {"1"}},
                                                    {"idle_power", {"0"}},
                                                    {"busy_power", {"700.5"}},
                                                    {"events", {"hang 7 after 5s", "lose 0 after 1s for 2s"}},
                                                    {"processes", {"7=4711", "*=/run/pids,busy=1"}}});
  ASSERT_EQ(settings->processes.size(), 2U);
  EXPECT_EQ(settings->processes[0].pid, 4711);
  EXPECT_EQ(settings->processes[1].file, "/run/pids");
  expect_same(*settings, {8, UINT64_MAX, {500ms, 1, 0, 700.5}, {Event{}, Event{}}});
  EXPECT_EQ(settings->events[0].device, 7);
  EXPECT_EQ(settings->events[1].end, Nanoseconds(3s));
}

TEST(SimulatedOptions, AnErrorNamesTheKeyAndWhatWouldBeRight) {
  EXPECT_EQ(error_of("devices", "0"),
            R"(collectors.simulated.devices: must be a whole number from 1 to 1024, not "0")");
  EXPECT_EQ(error_of("devices", "2.5"),
            R"(collectors.simulated.devices: must be a whole number from 1 to 1024, not "2.5")");
  EXPECT_EQ(error_of("seed", "-1"),
            R"(collectors.simulated.seed: must be a whole number, 0 or more, not "-1")");
  EXPECT_EQ(error_of("period", "0s"), R"(collectors.simulated.period: must be 1ms or more, not "0s")");
  EXPECT_EQ(error_of("duty", "1.1"), R"(collectors.simulated.duty: must be a number from 0 to 1, not "1.1")");
  EXPECT_EQ(error_of("duty", "nan"), R"(collectors.simulated.duty: must be a number from 0 to 1, not "nan")");
  EXPECT_EQ(error_of("idle_power", "-1"),
            R"(collectors.simulated.idle_power: must be watts from 0 to 1000000, not "-1")");
  EXPECT_EQ(error_of("busy_power", "89"),
            R"(collectors.simulated.busy_power: must be watts from idle_power to 1000000, not "89")");
  EXPECT_EQ(error_of("events", "hang 2 after 5s"),
            R"(collectors.simulated.events: event "hang 2 after 5s": no device "2"; must be 0 to 1)");
  EXPECT_EQ(error_of("processes", "2=7"),
            R"(collectors.simulated.processes: "2=7": no device "2"; must be * or a number below 2)");
}

}  // namespace
}  // namespace gpumeter::simulated
