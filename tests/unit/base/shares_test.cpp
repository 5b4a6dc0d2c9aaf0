#include "base/shares.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter {
namespace {

TEST(Shares, TheOneWithTheMostYields) {
  Shares<std::string> shares;
  EXPECT_FALSE(shares.yields_to("new"));
  for (const char* const key : {"a", "b", "b", "b", "c", "c"}) shares.add(key);
  EXPECT_EQ(shares.of("b"), 3U);
  EXPECT_EQ(shares.yields_to("new"), "b");
  EXPECT_EQ(shares.yields_to("a"), "b");
  EXPECT_FALSE(shares.yields_to("c")) << "c would then have more than b";
  shares.remove("b");
  shares.remove("b");
  shares.remove("b");
  shares.remove("b");  // has none
  EXPECT_EQ(shares.of("b"), 0U);
  EXPECT_EQ(shares.yields_to("new"), "c");
  shares.remove("c");
  EXPECT_TRUE(shares.yields_to("new")) << "a newcomer without a place gets one";
  EXPECT_FALSE(shares.yields_to("a"));
}

TEST(Shares, AUserNamespaceIsOnePayer) {
  EXPECT_EQ(payer_of(1000, 1000), 1000U);
  EXPECT_EQ(payer_of(100'007, 1000), 1000U) << "a subordinate uid";
  EXPECT_EQ(payer_of(0, 0), 0U);
  EXPECT_EQ(payer_of(1'000'000, 0), payer_of(1'000'005, 0)) << "a container whose uids are root's";
  EXPECT_NE(payer_of(1'000'000, 0), 0U);
}

}  // namespace
}  // namespace gpumeter
