#include "base/users.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

std::optional<std::uint32_t> uid_of(std::string_view name) {
  if (name == "alice") return 1000;
  return name == "bob" ? std::optional<std::uint32_t>(1001) : std::nullopt;
}

TEST(SubordinateUids, BelongToTheirOwner) {
  const SubordinateUids uids("alice:100000:65536\nbob:165536:65536\n1002:300000:1\n", uid_of);
  EXPECT_EQ(uids.owner_of(99'999), 99'999U);
  EXPECT_EQ(uids.owner_of(100'000), 1000U);
  EXPECT_EQ(uids.owner_of(165'535), 1000U);
  EXPECT_EQ(uids.owner_of(165'536), 1001U);
  EXPECT_EQ(uids.owner_of(231'072), 231'072U);
  EXPECT_EQ(uids.owner_of(300'000), 1002U);
  EXPECT_EQ(uids.owner_of(300'001), 300'001U);
  EXPECT_EQ(uids.owner_of(0), 0U);
  EXPECT_EQ(uids.owner_of(4'294'967'295U), 4'294'967'295U);
}

TEST(SubordinateUids, SkipLinesThatAreNone) {
  const SubordinateUids uids(
      "\n# comment\nalice\nalice:x:1\nalice:5\n:5:5\nnobody_knows:7:7\nalice:0:10\nalice:-1:5\n"
      "alice:4294967000:4294967295\n alice:50:2 \r\n",
      uid_of);
  for (const std::uint32_t uid : {0U, 1U, 5U, 7U, 9U}) EXPECT_EQ(uids.owner_of(uid), uid);
  EXPECT_EQ(uids.owner_of(51), 1000U);
  EXPECT_EQ(uids.owner_of(4'294'967'295U), 1000U);
}

TEST(SubordinateUids, AskOnceForEachOwner) {
  int asked = 0;
  std::string text;
  for (int i = 1; i <= 1000; ++i) text += "alice:" + std::to_string(i * 10) + ":10\n";
  const SubordinateUids uids(text, [&](std::string_view name) { return ++asked, uid_of(name); });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(uids.owner_of(7777), 1000U);
}

TEST(UserOwners, AreReadByAThread) {
  Tree tree{{"subuid", "alice:100000:65536\n"}};
  UserOwners owners(tree / "subuid", uid_of);
  EXPECT_EQ(owners.owner_of(100'001), 100'001U);
  owners.start();
  owners.wait(std::chrono::minutes(1));
  EXPECT_EQ(owners.owner_of(100'001), 1000U);
}

TEST(UserOwners, WithoutTheFileEachUidIsItsOwn) {
  UserOwners owners("/nonexistent", uid_of);
  owners.start();
  owners.wait(std::chrono::minutes(1));
  EXPECT_EQ(owners.owner_of(100'001), 100'001U);
}

}  // namespace
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
