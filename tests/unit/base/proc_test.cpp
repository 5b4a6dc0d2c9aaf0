#include "base/proc.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace gpumeter::proc {
namespace {

std::string stat(std::string_view name, std::string_view state, int threads = 1) {
  return "7 (" + std::string(name) + ") " + std::string(state) +
         " 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 " + std::to_string(threads) + " 21 4711 23\n";
}

TEST(Proc, AFieldHasItsNumberWhateverTheNameIs) {
  for (const char* name : {"train", ") S 1 2 (", "a b\n) c", ""}) {
    EXPECT_EQ(stat_field(stat(name, "R"), 3), "R") << name;
    EXPECT_EQ(stat_field(stat(name, "R"), 4), "4") << name;
    EXPECT_EQ(stat_field(stat(name, "R"), 23), "23") << name;
    EXPECT_EQ(stat_field(stat(name, "R"), 24), "") << name;
    EXPECT_EQ(start_ticks(stat(name, "R")), 4711U) << name;
  }
  EXPECT_EQ(stat_field("", 3), "");
}

TEST(Proc, AStartTimeIsAWholeNumber) {
  EXPECT_EQ(start_ticks(""), std::nullopt);
  EXPECT_EQ(start_ticks("7 (train) S 1 2"), std::nullopt);
  EXPECT_EQ(start_ticks("7 (train) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 x"), std::nullopt);
  EXPECT_EQ(start_ticks("7 (train) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 -1 2"), std::nullopt);
}

TEST(Proc, AZombieIsNotAliveUnlessItHasThreads) {
  EXPECT_TRUE(is_alive(stat("train", "S")));
  for (const char* state : {"Z", "X", "x"}) {
    EXPECT_FALSE(is_alive(stat("train", state))) << state;
    EXPECT_TRUE(is_alive(stat("train", state, 2))) << state;
  }
  EXPECT_FALSE(is_alive("7 (train) Z 1"));
  EXPECT_TRUE(is_alive("7 () Z 1) R 1"));
  EXPECT_FALSE(is_alive(""));
}

TEST(Proc, TheUserLineHasFourNumbers) {
  using Uids = std::array<std::uint32_t, 4>;
  EXPECT_EQ(uids("Name:\tx\nUid:\t1000\t0\t1\t2\nGid:\t5\t5\t5\t5\n"), (Uids{1000, 0, 1, 2}));
  EXPECT_EQ(uids("Name:\tx\nUid:\t4294967295\t0\t0\t0"), (Uids{4294967295, 0, 0, 0}));
  for (const char* bad :
       {"", "Uid:\t5\t", "Name:\tx\nUid:\t", "Name:\tx\nUid:\t5", "Name:\tx\nUid:\t-1\t0\t0\t0\n",
        "Name:\tx\nUid:\t4294967296\t0\t0\t0\n", "Name:\tx\\nUid:\t5\t0\t0\t0\n"}) {
    EXPECT_EQ(uids(bad), std::nullopt) << bad;
  }
}

TEST(Proc, APathNamesTheProcess) { EXPECT_EQ(path("/proc", 7, "stat"), "/proc/7/stat"); }

}  // namespace
}  // namespace gpumeter::proc
