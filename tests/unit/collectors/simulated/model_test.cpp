#include "collectors/simulated/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/text.hpp"

namespace gpumeter::simulated {
namespace {

using namespace std::chrono_literals;
using Kind = Event::Kind;

auto fields(const Event& event) { return std::tuple(event.kind, event.device, event.begin, event.end); }

std::string error_of(std::string_view text, int device_count = 2) {
  const Result<Event> event = parse_event(text, device_count);
  return event ? "no error" : event.error().message();
}

constexpr auto kForEver = Nanoseconds::max();

TEST(SimulatedEvent, HasAnEndOrNone) {
  EXPECT_EQ(fields(*parse_event("hang 1 after 5s", 2)), std::tuple(Kind::hang, 1, Nanoseconds(5s), kForEver));
  EXPECT_EQ(fields(*parse_event("lose 0 after 500ms for 2m", 1)),
            std::tuple(Kind::lose, 0, Nanoseconds(500ms), Nanoseconds(120s + 500ms)));
  EXPECT_EQ(fields(*parse_event("  overheat 7  after 0s for 1.5s ", 8)),
            std::tuple(Kind::overheat, 7, Nanoseconds(0), Nanoseconds(1500ms)));
  EXPECT_EQ(fields(*parse_event("throttle 0 after 1h", 2)),
            std::tuple(Kind::throttle, 0, Nanoseconds(1h), kForEver));
}

TEST(SimulatedEvent, SomeVerbsHaveACode) {
  EXPECT_EQ(parse_event("xid:79 0 after 1s", 1)->code, 79);
  EXPECT_EQ(parse_event("recovery:reboot 0 after 1s", 1)->code, 2);
  EXPECT_EQ(parse_event("ecc 0 after 1s", 1)->code, 0);
}

// Verbs with a code are listed with its kind: "xid:CODE".
TEST(SimulatedEvent, EveryListedVerbIsOne) {
  std::string_view verbs = kVerbList;
  for (int kind = 0; !verbs.empty(); ++kind) {
    std::string verb(trimmed(take_until(verbs, ',')));
    if (verb == "xid:CODE") verb = "xid:13";
    if (verb == "recovery:ACTION") verb = "recovery:reset";
    const Result<Event> event = parse_event(verb + " 0 after 1s", 1);
    ASSERT_TRUE(event) << event.error().message();
    EXPECT_EQ(static_cast<int>(event->kind), kind) << verb;
  }
}

TEST(SimulatedEvent, AnErrorNamesTheTextAndWhatWouldBeRight) {
  const std::string form =
      R"(must be "VERB DEVICE after TIME [for TIME]", such as "lose 0 after 30s for 10s"; VERB is one of )" +
      std::string(kVerbList);
  EXPECT_EQ(error_of(""), R"(event "": )" + form);
  EXPECT_EQ(error_of("hang 0"), R"(event "hang 0": )" + form);
  EXPECT_EQ(error_of("hang 0 in 5s"), R"(event "hang 0 in 5s": )" + form);
  EXPECT_EQ(error_of("hang 0 after 5s until 6s"), R"(event "hang 0 after 5s until 6s": )" + form);
  EXPECT_EQ(error_of("melt 0 after 5s"),
            R"(event "melt 0 after 5s": unknown verb "melt"; must be one of )" + std::string(kVerbList));
  EXPECT_EQ(
      error_of("lose:79 0 after 5s"),
      R"(event "lose:79 0 after 5s": unknown verb "lose:79"; must be one of )" + std::string(kVerbList));
  EXPECT_EQ(error_of("xid:x 0 after 5s"),
            R"(event "xid:x 0 after 5s": no XID "x"; must be a number from 1 to 9999, such as xid:79)");
  EXPECT_EQ(error_of("xid 0 after 5s"),
            R"(event "xid 0 after 5s": no XID ""; must be a number from 1 to 9999, such as xid:79)");
  EXPECT_EQ(error_of("recovery:melt 0 after 5s"),
            R"(event "recovery:melt 0 after 5s": no recovery action "melt"; )"
            "must be none, reset, reboot, drain_p2p or drain_and_reset, such as recovery:reset");
  EXPECT_EQ(error_of("hang 0 after 5"), R"(event "hang 0 after 5": "5" is not a duration; must be )"
                                        "a number with its unit, such as 500ms, 5s or 1m30s");
  EXPECT_EQ(error_of("hang 0 after 5s for ever"),
            R"(event "hang 0 after 5s for ever": "ever" is not a duration; )"
            "must be a number with its unit, such as 500ms, 5s or 1m30s");
}

TEST(SimulatedEvent, ADeviceThatIsNotThereIsAnError) {
  EXPECT_EQ(error_of("hang 2 after 5s"), R"(event "hang 2 after 5s": no device "2"; must be 0 to 1)");
  EXPECT_EQ(error_of("hang -1 after 5s"), R"(event "hang -1 after 5s": no device "-1"; must be 0 to 1)");
  EXPECT_EQ(error_of("hang 0x after 5s"), R"(event "hang 0x after 5s": no device "0x"; must be 0 to 1)");
  EXPECT_EQ(error_of("hang 1 after 5s", 1), R"(event "hang 1 after 5s": no device "1"; must be 0)");
}

TEST(SimulatedTimeline, KnowsWhatHoldsAndWhatWas) {
  const Event events[] = {
      {Kind::lose, 1, 10s, 20s}, {Kind::lose, 0, 0s, 90s}, {Kind::lose, 1, 30s, kForEver}};
  const Timeline timeline(events, 1);
  const auto at = [&](Nanoseconds time) {
    return std::tuple(timeline.holds(Kind::lose, time), timeline.begun(Kind::lose, time),
                      timeline.over(Kind::lose, time), timeline.held_seconds(Kind::lose, time));
  };
  using Was = std::tuple<bool, std::size_t, std::size_t, double>;
  EXPECT_EQ(at(10s - 1ns), Was(false, 0, 0, 0));
  EXPECT_EQ(at(10s), Was(true, 1, 0, 0));
  EXPECT_EQ(at(20s), Was(false, 1, 1, 10));
  EXPECT_EQ(at(40s), Was(true, 2, 1, 20));
  EXPECT_EQ(timeline.last(Kind::lose, 10s - 1ns), nullptr);
  EXPECT_EQ(timeline.last(Kind::lose, 24h)->begin, 30s);
  EXPECT_FALSE(timeline.holds(Kind::hang, 10s));
}

using namespace std::chrono_literals;

const Workload kWorkload;  // 7.3 s, 0.37, 90 W, 420 W
const double kMeanWatts = 90 + (420 - 90) * 0.37;

Model model(std::vector<Event> events = {}, int device = 0) { return {kWorkload, 1, device, events}; }

TEST(SimulatedModel, MeansOverWholePeriodsAreTheTruth) {
  for (int device = 0; device < 8; ++device) {
    const Nanoseconds time = 1000 * kWorkload.period;
    EXPECT_NEAR(model({}, device).busy_seconds(time) / to_seconds(time), 0.37, 1e-12);
    EXPECT_NEAR(model({}, device).energy_joules(time) / to_seconds(time), kMeanWatts, 1e-9);
  }
}

TEST(SimulatedModel, IntegralsEqualNumericIntegration) {
  const Model device = model();
  constexpr Nanoseconds kStep = 1ms;
  double busy = 0, energy = 0;
  for (Nanoseconds time{0}; time < 100s; time += kStep) {
    busy += (device.busy(time + kStep / 2) ? 1 : 0) * to_seconds(kStep);
    energy += device.power_instant_watts(time + kStep / 2) * to_seconds(kStep);
  }
  // The test locates each edge of the wave to within one step; a period has two edges.
  const double edges = 2 * 100 / 7.3 * to_seconds(kStep);
  EXPECT_NEAR(device.busy_seconds(100s), busy, edges);
  EXPECT_NEAR(device.energy_joules(100s), energy, edges * (420 - 90));
}

TEST(SimulatedModel, WhatTheDriverShowsIsTheMeanOfTheLastSecond) {
  const Model device = model();
  for (Nanoseconds time = 1s; time < 20s; time += 37ms) {
    EXPECT_NEAR(device.utilization(time), device.busy_seconds(time) - device.busy_seconds(time - 1s), 1e-12);
    EXPECT_NEAR(device.power_watts(time), device.energy_joules(time) - device.energy_joules(time - 1s), 1e-9);
    EXPECT_GE(device.utilization(time), 0);
    EXPECT_LE(device.utilization(time), 1);
  }
}

TEST(SimulatedModel, DutyZeroAndOneAreSteady) {
  const Model idle({7s, 0, 90, 420}, 1, 0, {});
  const Model busy({7s, 1, 90, 420}, 1, 0, {});
  EXPECT_EQ(idle.power_watts(33s), 90);
  EXPECT_EQ(idle.temperature_celsius(33s, 0), 38);
  EXPECT_EQ(busy.power_watts(33s), 420);
  EXPECT_EQ(busy.temperature_celsius(33s, 0), 72);
}

TEST(SimulatedModel, SeedAndDeviceGiveThePhase) {
  const auto wave = [](std::uint64_t seed, int device) {
    const Model made(kWorkload, seed, device, {});
    std::vector<bool> busy;
    for (Nanoseconds time{0}; time < kWorkload.period; time += 100ms) busy.push_back(made.busy(time));
    return busy;
  };
  EXPECT_EQ(wave(1, 0), wave(1, 0));
  EXPECT_NE(wave(1, 0), wave(1, 1));
  EXPECT_NE(wave(1, 0), wave(2, 0));
}

TEST(SimulatedModel, TemperatureIsAFirstOrderLagOfTheLoad) {
  const Model device = model();
  constexpr double kStep = 1e-3, kLag = 4;
  double heat = 0;  // settles long before the comparison
  for (int millisecond = 0; millisecond < 120'000; ++millisecond) {
    const Nanoseconds time = std::chrono::milliseconds(millisecond);
    if (millisecond > 60'000 && millisecond % 100 == 0) {
      EXPECT_NEAR(device.temperature_celsius(time, 0), 38 + (72 - 38) * heat, 0.6);  // whole degrees
    }
    heat += ((device.busy(time) ? 1 : 0) - heat) / kLag * kStep;
  }
}

TEST(SimulatedModel, OverheatingExceedsSlowdownLimitsButNotShutdownLimits) {
  const Model device = model({{Event::Kind::overheat, 0, 100s, 120s}});
  for (int sensor = 0; sensor < 3; ++sensor) {
    const Model::Sensor& facts = Model::kSensors[sensor];
    EXPECT_LT(device.temperature_celsius(100s, sensor), facts.slowdown);
    EXPECT_EQ(device.temperature_celsius(120s, sensor), facts.slowdown + 4);
    EXPECT_LT(device.temperature_celsius(120s, sensor), facts.shutdown);
    EXPECT_EQ(device.temperature_celsius(140s, sensor), model().temperature_celsius(140s, sensor));
  }
  EXPECT_EQ(device.throttle_reasons(99s), 0U);
  EXPECT_EQ(device.throttle_reasons(100s), Model::kSoftwareThermal);
  EXPECT_EQ(device.throttle_reasons(119s), Model::kSoftwareThermal | Model::kHardwareThermal);
  EXPECT_EQ(device.throttle_reasons(140s), 0U);
  EXPECT_EQ(device.fan_percent(119s), 100);
}

TEST(SimulatedModel, EventsLeaveTheTruthAlone) {
  const Model device = model({{Event::Kind::overheat, 0, 1s, 900s}, {Event::Kind::throttle, 0, 2s, 900s}});
  EXPECT_EQ(device.busy_seconds(730s), model().busy_seconds(730s));
  EXPECT_EQ(device.energy_joules(730s), model().energy_joules(730s));
}

TEST(SimulatedModel, ThrottlingHoldsTheBusyClockDown) {
  const Model always({7s, 1, 90, 420}, 1, 0, std::vector<Event>{{Event::Kind::throttle, 0, 5s, 9s}});
  EXPECT_EQ(always.clock_megahertz(4s), 1980);
  EXPECT_EQ(always.clock_megahertz(5s), 1200);
  EXPECT_EQ(always.throttle_reasons(5s), Model::kPowerCap);
  EXPECT_EQ(always.clock_megahertz(9s), 1980);
}

TEST(SimulatedModel, MemoryStaysWithinTheCard) {
  const Model device = model();
  double most = 0, least = Model::kMemoryGibibytes;
  for (Nanoseconds time{0}; time < 10 * kWorkload.period; time += 1s) {
    most = std::max(most, device.memory_used_gibibytes(time));
    least = std::min(least, device.memory_used_gibibytes(time));
  }
  EXPECT_EQ(least, 2);
  EXPECT_EQ(most, 65);
}

}  // namespace
}  // namespace gpumeter::simulated
