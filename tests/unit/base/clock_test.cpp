#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Duration, IsNumbersWithUnitsAddedUp) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("1s"), seconds(1));
  EXPECT_EQ(parse_duration("10m"), minutes(10));
  EXPECT_EQ(parse_duration("24h"), hours(24));
  EXPECT_EQ(parse_duration("1h30m"), minutes(90));
  EXPECT_EQ(parse_duration("1m30s250ms"), milliseconds(90'250));
  EXPECT_EQ(parse_duration("7.3s"), milliseconds(7'300));
  EXPECT_EQ(parse_duration("0s"), milliseconds(0));
  EXPECT_EQ(parse_duration("876000h"), hours(876'000));
}

TEST(Duration, IsNothingElse) {
  for (const char* text : {"",           "1",
                           "s",          "1 s",
                           " 1s",        "1s ",
                           "-1s",        "+1s",
                           "1x",         "1d",
                           "1sec",       "1e3s",
                           "infs",       "nans",
                           "0x1s",       "1s2",
                           "0.5ms",      "1.2345s",
                           "1H",         "876001h",
                           "876000h1ms", "99999999999999999999999999h"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Duration, IsShownAsTheShortestTextThatReadsBack) {
  EXPECT_EQ(duration_text(seconds(60)), "1m");
  EXPECT_EQ(duration_text(hours(24)), "24h");
  EXPECT_EQ(duration_text(milliseconds(90 * 60'000 + 5)), "1h30m5ms");
  EXPECT_EQ(duration_text(milliseconds(0)), "0s");
}

}  // namespace
}  // namespace gpumeter
