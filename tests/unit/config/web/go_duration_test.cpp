#include "config/web/go_duration.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace gpumeter::config::web {
namespace {

// Values of Go's own test of time.ParseDuration.
TEST(GoDuration, AcceptsWhatGoAccepts) {
  const std::pair<std::string_view, std::int64_t> cases[] = {{"0", 0},
                                                             {"-0", 0},
                                                             {"5s", 5'000'000'000},
                                                             {"+5s", 5'000'000'000},
                                                             {"-5s", -5'000'000'000},
                                                             {"5.6s", 5'600'000'000},
                                                             {".5s", 500'000'000},
                                                             {"1.s", 1'000'000'000},
                                                             {"10ns", 10},
                                                             {"11us", 11'000},
                                                             {"12\u00b5s", 12'000},
                                                             {"12\u03bcs", 12'000},
                                                             {"13ms", 13'000'000},
                                                             {"3h30m", 12'600'000'000'000},
                                                             {"4m10.5s", 250'500'000'000},
                                                             {"1h1m1s1ms1us1ns", 3'661'001'001'001}};
  for (const auto& [text, nanoseconds] : cases) {
    EXPECT_EQ(parse_go_duration(text), Nanoseconds(nanoseconds)) << text;
  }
}

TEST(GoDuration, RejectsWhatGoRejects) {
  for (const std::string_view text : {"", "3", "-", "s", ".", "-.", ".s", "+.s", "1d", "1 s", " 1s", "1s ",
                                      "1e3s", "inf", "1sm", "3000000h"}) {
    EXPECT_EQ(parse_go_duration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpumeter::config::web
