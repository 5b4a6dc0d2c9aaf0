#include "collectors/amd/readers/sysfs_texts.hpp"

#include <gtest/gtest.h>

namespace gpumeter::amd {
namespace {

TEST(CountTest, IsTheNumberBehindItsWord) {
  EXPECT_EQ(count_of("ue: 2\nce: 17\n", "ce"), 17);
  EXPECT_EQ(count_of("DLP 1\nTLP 3\nTOTAL_ERR_FATAL 4", "TLP"), 3);
  EXPECT_EQ(count_of("PoisonTLPBlocked 3\n", "TLP"), std::nullopt);
  EXPECT_EQ(count_of("ce: 1x\n", "ce"), std::nullopt);
  EXPECT_EQ(count_of("ce: -1\n", "ce"), std::nullopt);
  EXPECT_EQ(count_of("ce:\n", "ce"), std::nullopt);
  EXPECT_EQ(count_of("", "ce"), std::nullopt);
}

TEST(CountTest, ASentenceHasNone) {
  EXPECT_TRUE(has_counts("ue: 0\nce: 0\n"));
  EXPECT_FALSE(has_counts("Query currently inaccessible\n"));
  EXPECT_FALSE(has_counts(""));
}

TEST(LevelTest, OfAListWithAMark) {
  constexpr std::string_view kLevels = "0: 96Mhz \n1: 456Mhz *\n2: 772Mhz \n3: 1218Mhz \n";
  EXPECT_EQ(highest_level(kLevels), 1218);
  EXPECT_EQ(current_level(kLevels), 456);
}

TEST(LevelTest, TheHighestNeedNotBeTheLast) {
  EXPECT_EQ(highest_level("0: 1600Mhz *\n1: 1067Mhz\n2: 400Mhz"), 1600);
}

TEST(LevelTest, DeepSleepIsTheCurrentLevelWhereItIsMarked) {
  EXPECT_EQ(current_level("S: 19Mhz *\n0: 500Mhz \n1: 2371Mhz \n"), 19);
  EXPECT_EQ(current_level("S: 500Mhz \n1: 789Mhz *\n2: 2070Mhz \n"), 789);
}

TEST(LevelTest, NoMarkSaysNothingOfTheCurrentOne) {
  EXPECT_EQ(highest_level("0: 300Mhz \n1: 1900Mhz \n"), 1900);
  EXPECT_EQ(current_level("0: 300Mhz \n1: 1900Mhz \n"), std::nullopt);
}

TEST(LevelTest, TheFirstOfSeveralMarks) {
  EXPECT_EQ(current_level("0: 800Mhz *\n1: 801Mhz *\n2: 1200Mhz \n"), 800);
}

TEST(LevelTest, OtherTextsHaveNone) {
  for (const std::string_view text :
       {"", "\n", "0:", "0: Mhz *", "0: 8.0GT/s, x16 *", "abc", "0: 99999999999Mhz *", "0: -1Mhz *"}) {
    EXPECT_EQ(highest_level(text), std::nullopt) << text;
    EXPECT_EQ(current_level(text), std::nullopt) << text;
  }
}

TEST(LinksTest, AreTheSumOverTheHive) {
  EXPECT_EQ(sum_of_links("00 02 02 01 \n"), 5);
  EXPECT_EQ(sum_of_links("0a 00"), 10);
  EXPECT_EQ(sum_of_links("00 \n"), 0);
  EXPECT_EQ(sum_of_links(""), std::nullopt);
  EXPECT_EQ(sum_of_links("02 zz"), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::amd
