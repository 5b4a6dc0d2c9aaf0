#include "collectors/nvidia/events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "collectors/nvidia/nvml/constants.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

TEST(DeviceEvents, EveryXidHasTheNameOfItsNumber) {
  for (std::size_t place = 0; place + 1 < kXidPlaces; ++place)
    EXPECT_EQ(xid_place(std::stoull(std::string(kXidNames[place]))), place);
  EXPECT_EQ(kXidNames[kXidPlaces - 1], "other");
  EXPECT_EQ(xid_place(999), kXidPlaces - 1);
  EXPECT_EQ(xid_place(79ULL << 32 | 79), kXidPlaces - 1);
}

TEST(DeviceEvents, CodesOfFaultsHaveSeriesOfTheirOwn) {
  for (const unsigned xid : {46U, 146U, 147U, 148U, 150U, 160U})
    EXPECT_NE(xid_place(xid), kXidPlaces - 1) << xid;
}

TEST(DeviceEvents, AnInstancesCodesAreCountedByItsIdAndForgottenTogether) {
  DeviceEvents events;
  events.count_xid(31, 3, std::chrono::seconds(1));
  events.count_xid(119, 3, std::chrono::seconds(1));
  events.count_xid(31, 200, std::chrono::seconds(1));  // no such id
  EXPECT_EQ(events.xids_of(3, 1), 1U);
  EXPECT_EQ(events.xids_of(3, kInstanceXidPlaces - 1), 1U);
  EXPECT_EQ(events.xids_of(4, 1) + events.xids_of(200, 1), 0U);
  EXPECT_EQ(events.xids(xid_place(31)), 2U);
  events.forget_instances();
  EXPECT_EQ(events.xids_of(3, 1), 0U);
  EXPECT_EQ(events.xids(xid_place(31)), 2U);
}

TEST(DeviceEvents, CountsByPlaceAndKeepsTheLastTime) {
  DeviceEvents events;
  events.count_xid(79, nvml::kNoInstance, std::chrono::seconds(1000));
  events.count_xid(79, nvml::kNoInstance, std::chrono::milliseconds(1000500));
  events.count_xid(7, nvml::kNoInstance, std::chrono::seconds(2000));
  EXPECT_EQ(events.xids(xid_place(79)), 2U);
  EXPECT_EQ(events.last(xid_place(79)), 1000.5);
  EXPECT_EQ(events.xids(kXidPlaces - 1), 1U);
  EXPECT_EQ(events.xids(xid_place(31)), 0U);
  EXPECT_EQ(events.last(xid_place(31)), 0);
}

TEST(DeviceEvents, EveryTypeThatIsHeardHasItsEvent) {
  std::uint64_t types = nvml::kEventXid;
  for (std::size_t place = 0; place < std::size(kEvents); ++place) {
    const auto event = static_cast<Event>(place);
    if (kEvents[place].type == kOwnEvent) continue;
    EXPECT_EQ(event_of(kEvents[place].type), event);
    types |= kEvents[place].type;
  }
  EXPECT_EQ(heard_types(), types);
  EXPECT_EQ(event_of(nvml::kEventXid), std::nullopt);
}

TEST(DeviceEvents, WhatTheCollectorSeesItselfIsNoTypeOfTheDriver) {
  for (const Event event : {Event::bus_lost, Event::reset_required, Event::returned})
    EXPECT_EQ(kEvents[static_cast<std::size_t>(event)].type, kOwnEvent);
  EXPECT_EQ(event_of(kOwnEvent), std::nullopt);
  EXPECT_EQ(kEvents[static_cast<std::size_t>(Event::bus_lost)].name, "bus_lost");
  EXPECT_EQ(kEvents[static_cast<std::size_t>(Event::returned)].name, "returned");
  EXPECT_EQ(kEvents[static_cast<std::size_t>(Event::recovery_action)].name, "recovery_action");
}

using std::chrono::milliseconds;
using testing::ElementsAre;

/// A GPU whose lane turns events into series, and its session's listener as the event thread uses it.
class Events : public testing::Test {
 protected:
  void play(const std::string& scenario) {
    driver_.emplace(scenario);
    gpu_.emplace(*driver_);
    gpu_->attach(0);
    EXPECT_THAT(reported(0), ElementsAre());  // the listener registers here
  }
  std::vector<std::string> reported(double at) {
    driver_->set_time(at);
    const auto session = *NvmlSession::shared(driver_->library());
    EventListener::Outcome now = session->listener().wait(milliseconds(1), clock_);
    result_ = now.result;
    std::vector<std::string> kinds;
    for (const DeviceEvent& event : now.events) kinds.push_back(event.uuid + " " + event.kind);
    return kinds;
  }
  /// Series of events that are not 0.
  std::string counted(double at) {
    gpu_->pass(Tier::fast, at);
    std::istringstream in(gpu_->lines({"gpu_xid", "gpu_events"}));
    std::string kept;
    for (std::string line; std::getline(in, line);) kept += line.ends_with(" 0") ? "" : line + "\n";
    return kept;
  }

  FakeClock clock_;
  std::optional<FakeDriver> driver_;
  std::optional<NvidiaGpu> gpu_;
  unsigned result_ = 0;
};

TEST_F(Events, AreCountedByTheirNameAndOtherXidsTogether) {
  play(R"(
devices: [{uuid: GPU-0, supported_events: [xid, poison_fatal, recovery_action]}]
events:
  - {at: 1, device: 0, type: xid, data: 79}
  - {at: 1.1, device: 0, type: xid, data: 4}
  - {at: 1.2, device: 0, type: xid, data: 999}
  - {at: 1.3, device: 0, type: poison_fatal}
  - {at: 1.4, device: 0, type: recovery_action}
)");
  clock_.advance(milliseconds(1500));
  EXPECT_THAT(reported(2), ElementsAre("GPU-0 xid 79", "GPU-0 xid 4", "GPU-0 xid 999", "GPU-0 poison_fatal",
                                       "GPU-0 recovery_action"));
  EXPECT_EQ(counted(2),
            "gpu_events_total{event=\"poison_fatal\"} 1\n"
            "gpu_events_total{event=\"recovery_action\"} 1\n"
            "gpu_xid_errors_total{xid=\"79\"} 1\n"
            "gpu_xid_errors_total{xid=\"other\"} 2\n"
            "gpu_xid_last_timestamp_seconds{xid=\"79\"} 1767225601.5\n"
            "gpu_xid_last_timestamp_seconds{xid=\"other\"} 1767225601.5\n");
}

TEST_F(Events, OfWhichTheDriverDoesNotTellHaveNoSeries) {
  play("devices: [{uuid: GPU-0, supported_events: [xid]}]");
  gpu_->pass(Tier::fast, 1);
  EXPECT_EQ(lines_of(gpu_->page().text(), {"gpu_events"}),
            "gpu_events_total{event=\"bus_lost\"} 0\n"
            "gpu_events_total{event=\"reset_required\"} 0\n"
            "gpu_events_total{event=\"returned\"} 0\n");
  EXPECT_NE(gpu_->lines({"gpu_xid_errors_total{xid=\"79\"} 0"}), "");
}

TEST_F(Events, AStormIsCountedToTheLastAndTakenInBites) {
  play(R"(
devices: [{uuid: GPU-0, supported_events: [xid]}]
storms: [{from: 0.5, until: 10.5, rate: 1000, device: 0, type: xid, data: 31}]
)");
  int waits = 0;
  std::size_t total = 0;
  do {
    const std::size_t bite = reported(20).size();
    EXPECT_LE(bite, 1000U);  // a request to stop the thread gets a turn in between
    total += bite;
    ++waits;
  } while (result_ == nvml::kSuccess);
  EXPECT_EQ(total, 10'000U);
  EXPECT_GE(waits, 10);
  EXPECT_EQ(lines_of(counted(20), {"gpu_xid_errors"}), "gpu_xid_errors_total{xid=\"31\"} 10000\n");
}

TEST_F(Events, AWaitThatFailsIsMadeGoodWithANewSet) {
  play(R"(
errors: {nvmlEventSetWait_v2: {steps: [[0, ok], [5, {error: unknown}], [6, ok]]}}
devices: [{uuid: GPU-0, supported_events: [xid]}]
events: [{at: 2, device: 0, type: xid, data: 31}, {at: 7, device: 0, type: xid, data: 31}]
)");
  EXPECT_THAT(reported(3), ElementsAre("GPU-0 xid 31"));
  EXPECT_THAT(reported(5), ElementsAre());
  EXPECT_EQ(result_, nvml::kUnknown);
  EXPECT_EQ(driver_->open().event_sets, 0U);
  EXPECT_THAT(reported(6), ElementsAre());
  EXPECT_EQ(driver_->open().event_sets, 1U);
  EXPECT_THAT(reported(8), ElementsAre("GPU-0 xid 31"));
  EXPECT_EQ(lines_of(counted(8), {"gpu_xid_errors"}), "gpu_xid_errors_total{xid=\"31\"} 2\n");
  EXPECT_EQ(driver_->violations(), "");
}

TEST_F(Events, ThatCannotBeListenedToAreAbsentAndNotZero) {
  for (const std::string function : {"nvmlEventSetCreate", "nvmlDeviceRegisterEvents"}) {
    driver_.emplace("errors: {" + function + ": {steps: [[0, {error: unknown}], [20, ok]]}}\n" + R"(
devices: [{uuid: GPU-0, power: {draw: 1 W}, supported_events: [xid, poison_fatal]}]
events: [{at: 22, device: 0, type: xid, data: 79}]
)");
    gpu_.emplace(*driver_);
    gpu_->attach(0);
    EXPECT_THAT(
        reported(1),
        ElementsAre("GPU-0 XIDs and other events are not counted, registration is retried: NVML error 999"));
    gpu_->pass(Tier::fast, 1);
    EXPECT_EQ(gpu_->lines({"gpu_xid", "gpu_events_total{event=\"poison"}), "") << function;
    EXPECT_NE(gpu_->lines({"gpu_events_total{event=\"bus_lost\"} 0"}), "");
    const auto asked = driver_->calls(function.c_str());
    EXPECT_THAT(reported(2), ElementsAre());  // reported once, and not retried at once
    EXPECT_EQ(driver_->calls(function.c_str()), asked);
    clock_.advance(std::chrono::seconds(6));
    EXPECT_THAT(reported(21), ElementsAre());
    EXPECT_THAT(reported(23), ElementsAre("GPU-0 xid 79"));
    EXPECT_EQ(lines_of(counted(23), {"gpu_xid_errors"}), "gpu_xid_errors_total{xid=\"79\"} 1\n");
    EXPECT_NE(gpu_->lines({"gpu_xid_errors_total{xid=\"31\"} 0"}), "");
    EXPECT_EQ(gpu_->page().errors(ReadStatus::unsupported), 0U);
    EXPECT_EQ(driver_->violations(), "");
  }
}

TEST_F(Events, HaveNoSeriesUntilSomebodyListens) {
  driver_.emplace("devices: [{uuid: GPU-0, power: {draw: 1 W}, supported_events: [xid, poison_fatal]}]");
  gpu_.emplace(*driver_);
  gpu_->attach(0);
  gpu_->pass(Tier::fast, 1);
  EXPECT_EQ(gpu_->lines({"gpu_xid", "gpu_events_total{event=\"poison"}), "");
  reported(1);
  gpu_->pass(Tier::fast, 2);
  EXPECT_NE(gpu_->lines({"gpu_xid_errors_total{xid=\"79\"} 0"}), "");
  gpu_->attach(3);  // attached again, still listening
  gpu_->pass(Tier::fast, 3);
  EXPECT_NE(gpu_->lines({"gpu_xid_errors_total{xid=\"79\"} 0"}), "");
  EXPECT_EQ(driver_->calls("nvmlDeviceRegisterEvents"), 1U);
}

TEST_F(Events, ThatAreNoLongerHeardLeaveAtOnce) {
  play(R"(
errors: {nvmlEventSetWait_v2: {steps: [[0, ok], [5, {error: unknown}]]}, nvmlEventSetCreate: {steps: [[0, ok], [5, {error: unknown}]]}}
devices: [{uuid: GPU-0, supported_events: [xid]}]
)");
  gpu_->pass(Tier::fast, 1);
  EXPECT_NE(gpu_->lines({"gpu_xid_errors_total{xid=\"79\"} 0"}), "");
  reported(5);
  reported(6);
  gpu_->pass(Tier::fast, 6);
  EXPECT_EQ(gpu_->lines({"gpu_xid"}), "");
}

TEST_F(Events, CountsOutliveALoss) {
  play(R"(
devices: [{uuid: GPU-0, power: {draw: 1 W}, supported_events: [xid], lost: {from: 5, until: 12}}]
events: [{at: 4.9, device: 0, type: xid, data: 79}, {at: 13, device: 0, type: xid, data: 79}]
)");
  EXPECT_THAT(reported(4.95), ElementsAre("GPU-0 xid 79"));
  gpu_->run(5, 6);
  gpu_->attach(12);
  reported(12);
  EXPECT_THAT(reported(14), ElementsAre("GPU-0 xid 79"));
  EXPECT_EQ(lines_of(counted(14), {"gpu_events", "gpu_xid_errors"}),
            "gpu_events_total{event=\"bus_lost\"} 1\n"
            "gpu_events_total{event=\"returned\"} 1\n"
            "gpu_xid_errors_total{xid=\"79\"} 2\n");
  gpu_->page().release();
  EXPECT_EQ(driver_->opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver_->violations(), "");
}

TEST_F(Events, WithNobodyToListenToTheDriverIsLeftAlone) {
  driver_.emplace("devices: [{uuid: GPU-0, power: {draw: 1 W}}]");
  gpu_.emplace(*driver_);
  gpu_->attach(0);
  EXPECT_THAT(reported(1), ElementsAre());
  EXPECT_EQ(driver_->calls("nvmlEventSetCreate") + driver_->calls("nvmlEventSetWait_v2"), 0U);
  EXPECT_EQ(gpu_->lines({"gpu_xid"}), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
