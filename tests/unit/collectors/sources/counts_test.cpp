#include "collectors/sources/counts.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

TEST(CountOf, IsTheNumberAfterAWord) {
  EXPECT_EQ(count_of("RxErr 1\nBadTLP 2\nTOTAL_ERR_COR 3\n", "BadTLP"), 2);
  EXPECT_EQ(count_of("ue: 7\nce: 0\n", "ue"), 7);
  EXPECT_EQ(count_of("BadTLP 2\n", "TLP"), std::nullopt);
  EXPECT_EQ(count_of("TLP many\n", "TLP"), std::nullopt);
}

TEST(HasCounts, ASentenceHasNone) {
  EXPECT_TRUE(has_counts("Query currently inaccessible\nue: 0\n"));
  EXPECT_FALSE(has_counts("Query currently inaccessible\n"));
  EXPECT_FALSE(has_counts(""));
}

}  // namespace
}  // namespace gpumeter
