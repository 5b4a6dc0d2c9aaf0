#include "collectors/simulated/duration.hpp"

#include <gtest/gtest.h>

namespace gpumeter::simulated {
namespace {

using namespace std::chrono_literals;

TEST(SimulatedDuration, NumbersWithUnitsAddUp) {
  EXPECT_EQ(parse_duration("500ms"), Nanoseconds(500ms));
  EXPECT_EQ(parse_duration("7.3s"), Nanoseconds(7300ms));
  EXPECT_EQ(parse_duration("7s300ms"), Nanoseconds(7300ms));
  EXPECT_EQ(parse_duration("1h30m"), Nanoseconds(90min));
  EXPECT_EQ(parse_duration("0s"), Nanoseconds(0));
}

TEST(SimulatedDuration, AnythingElseIsNone) {
  for (const char* text : {"", "5", "s", "5 s", "5d", "-5s", "+5s", "infs", "nans", "1e3s", "5sx", "0x5s",
                           "900000h", "99999999999999999999999s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpumeter::simulated
