#include "collectors/nvidia/device_events.hpp"

#include <gtest/gtest.h>

#include <string>

#include "collectors/nvidia/nvml/constants.hpp"

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

}  // namespace
}  // namespace gpumeter::nvidia
