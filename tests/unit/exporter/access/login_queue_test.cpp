#include "exporter/access/login_queue.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

using enum LoginRank;

LoginKey key(std::uint8_t number, std::uint8_t more = 0) {
  LoginKey key{};
  key[0] = number;
  key[1] = more;
  return key;
}

LoginCheck check(std::uint8_t number, LoginRank rank, const std::string& peer = "a") {
  return {.key = key(number), .peer = peer, .rank = rank};
}

TEST(LoginQueue, TakesTheFirstOfTheHighestRank) {
  const LoginRank ranks[] = {surely_bad, may_be_good, asked_again, may_be_good, asked_again};
  LoginQueue queue;
  for (std::uint8_t i = 0; i < 5; ++i) queue.add(check(i, ranks[i]));
  for (const auto& expected : {key(2), key(4), key(1), key(3), key(0)})
    EXPECT_EQ(queue.take()->key, expected);
  EXPECT_FALSE(queue.take());
}

TEST(LoginQueue, DisplacesTheLastOfTheLowestRankBelow) {
  LoginQueue queue;
  for (std::uint8_t i = 0; i < LoginQueue::kMost; ++i) {
    EXPECT_FALSE(queue.is_full());
    queue.add(check(i, i < 2 ? surely_bad : may_be_good));
  }
  EXPECT_TRUE(queue.is_full());
  EXPECT_FALSE(queue.displace("a", surely_bad));
  EXPECT_EQ(queue.displace("a", may_be_good)->key, key(1));
  EXPECT_EQ(queue.displace("a", may_be_good)->key, key(0));
  EXPECT_FALSE(queue.displace("a", may_be_good));
  EXPECT_EQ(queue.displace("a", asked_again)->key, key(LoginQueue::kMost - 1));
  EXPECT_FALSE(queue.is_full());
}

// The attack: one host fills the queue with passwords of the highest rank; another one is not kept out by it.
TEST(LoginQueue, PeersShareThePlacesAndTakeTurns) {
  LoginQueue queue;
  for (std::uint8_t i = 0; i < LoginQueue::kMost; ++i) queue.add(check(i, asked_again, "attacker"));
  EXPECT_FALSE(queue.displace("attacker", asked_again));
  EXPECT_EQ(queue.displace("user", may_be_good)->key, key(LoginQueue::kMost - 1));
  queue.add(check(100, may_be_good, "user"));
  EXPECT_FALSE(queue.displace("attacker", asked_again)) << "not in exchange for the user's";
  EXPECT_EQ(queue.take()->key, key(0));
  queue.add(check(50, asked_again, "attacker"));
  EXPECT_EQ(queue.take()->key, key(100)) << "the user's turn";
  EXPECT_EQ(queue.take()->key, key(1));
}

TEST(LoginQueue, ReleasesRequests) {
  LoginQueue queue;
  int first = 0;
  int second = 0;
  queue.add(check(1, may_be_good)).waiters = {{&first, nullptr}, {&second, nullptr}};
  EXPECT_EQ(queue.release(&first)->request, &first);
  EXPECT_FALSE(queue.release(&first));
  EXPECT_NE(queue.find(key(1)), nullptr);
  EXPECT_EQ(queue.release(&second)->request, &second);
  EXPECT_EQ(queue.find(key(1)), nullptr) << "nobody waits for the check";
}

TEST(RefusedKeys, RemembersTheLastOnes) {
  RefusedKeys refused;
  refused.add(key(1));
  EXPECT_TRUE(refused.contains(key(1)));
  EXPECT_FALSE(refused.contains(key(2)));
  for (int i = 0; i < 1024; ++i)
    refused.add(key(static_cast<std::uint8_t>(2 + i / 256), static_cast<std::uint8_t>(i % 256)));
  EXPECT_FALSE(refused.contains(key(1)));
  EXPECT_TRUE(refused.contains(key(2)));
}

}  // namespace
}  // namespace gpumeter
