#include "exporter/access/login_cache.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

TEST(LoginCache, KeepsGoodAndBadResults) {
  LoginCache cache;
  const LoginKey good = cache.key({"dave", "dave123"}, "hash");
  const LoginKey bad = cache.key({"dave", "dave124"}, "hash");
  EXPECT_EQ(cache.find("dave", good), std::nullopt);
  cache.keep("dave", "hash", good, true);
  cache.keep("dave", "hash", bad, false);
  EXPECT_EQ(cache.find("dave", good), true);
  EXPECT_EQ(cache.find("dave", bad), false);
  EXPECT_TRUE(cache.knows("dave", "hash"));
  EXPECT_FALSE(cache.knows("dave", "other hash"));
  EXPECT_FALSE(cache.knows("carol", "hash"));
}

// CVE-2022-46146: a result of one triple must not answer for another.
TEST(LoginCache, KeepsTheBoundariesOfTheParts) {
  const LoginCache cache;
  const LoginKey key = cache.key({"alice", "secret"}, "hash");
  EXPECT_EQ(key, cache.key({"alice", "secret"}, "hash"));
  EXPECT_NE(key, cache.key({"alicehash", "secret"}, ""));
  EXPECT_NE(key, cache.key({"alice", "hashsecret"}, ""));
  EXPECT_NE(key, cache.key({"alic", "secret"}, "ehash"));
  EXPECT_NE(key, cache.key({"alice", ""}, "hashsecret"));
  EXPECT_NE(key, LoginCache().key({"alice", "secret"}, "hash"));  // each process has its own secret
}

TEST(LoginCache, BadResultsDisplaceEachOtherOnly) {
  LoginCache cache;
  const LoginKey good = cache.key({"dave", "dave123"}, "hash");
  cache.keep("dave", "hash", good, true);
  const auto guess = [&](int i) { return cache.key({"dave", std::to_string(i)}, "hash"); };
  for (int i = 0; i < 1000; ++i) cache.keep("dave", "hash", guess(i), false);
  EXPECT_EQ(cache.find("dave", good), true);
  std::size_t known = 0;
  for (int i = 0; i < 1000; ++i) known += cache.find("dave", guess(i)).has_value() ? 1U : 0U;
  EXPECT_EQ(known, LoginCache::kMostBad);
}

TEST(LoginCache, DropsUsersThatAreGoneOrChanged) {
  LoginCache cache;
  for (const char* user : {"dave", "carol", "alice"}) {
    cache.keep(user, "hash", cache.key({user, "password"}, "hash"), true);
  }
  cache.retain({{"dave", "hash"}, {"carol", "new hash"}});
  EXPECT_TRUE(cache.knows("dave", "hash"));
  EXPECT_FALSE(cache.knows("carol", "hash"));
  EXPECT_FALSE(cache.knows("alice", "hash"));
}

}  // namespace
}  // namespace gpumeter
