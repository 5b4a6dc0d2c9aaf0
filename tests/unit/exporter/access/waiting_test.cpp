#include "exporter/access/waiting.hpp"

#include <gtest/gtest.h>

#include <array>

namespace gpumeter {
namespace {

using Room = WaitingRoom<int, int, std::string>;

constexpr std::size_t kPlaces = 8;

/// A request; its address identifies it.
struct Request {
  int resumed = 0;
};

Waiter waiter(Request& request, const std::string& peer = "a") {
  return {&request, peer, [](void* to) noexcept { ++static_cast<Request*>(to)->resumed; }};
}

struct WaitingRoomTest : testing::Test {
  std::optional<int> add(int key, unsigned rank = 0, const std::string& peer = "a", unsigned lane = 0) {
    return room.add({key, key, lane, rank, {waiter(requests[static_cast<std::size_t>(key)], peer)}});
  }
  /// The key of the next job; -1: none.
  int next(unsigned last_lane = ~0U) {
    const auto job = room.take(last_lane);
    if (!job) return -1;
    room.finish(job->key, "done");
    return job->key;
  }

  Room room{kPlaces, "refused"};
  std::array<Request, 100> requests = {};
};

TEST_F(WaitingRoomTest, TakesTheFirstOfTheHighestRankOfTheFirstLane) {
  const unsigned ranks[] = {0, 1, 2, 1, 2};
  for (int i = 0; i < 5; ++i) add(i, ranks[i]);
  add(5, 0, "a", 1);
  for (const int expected : {2, 4, 1, 3, 0}) EXPECT_EQ(next(0), expected);
  EXPECT_EQ(next(0), -1) << "the other lane is not asked for";
  EXPECT_EQ(next(), 5);
}

TEST_F(WaitingRoomTest, AHigherRankDisplacesTheLastOfTheLowest) {
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(add(i, i < 2 ? 0 : 1));
  EXPECT_EQ(add(10, 0), 10) << "it has no place itself";
  EXPECT_EQ(add(11, 1), 1);
  EXPECT_EQ(add(12, 1), 0);
  EXPECT_EQ(add(13, 1), 13);
  EXPECT_EQ(add(14, 2), 12);
  EXPECT_EQ(requests[1].resumed, 1);
  EXPECT_EQ(room.answer_to(&requests[1]), "refused");
  EXPECT_FALSE(add(15, 0, "a", 1)) << "each lane has its own places";
}

// The attack: one peer fills the room with jobs of the highest rank; another one is not kept out by it.
TEST_F(WaitingRoomTest, PeersShareThePlacesAndTakeTurns) {
  for (int i = 0; i < 8; ++i) add(i, 2, "attacker");
  EXPECT_EQ(add(20, 2, "attacker"), 20);
  EXPECT_EQ(add(30, 1, "user"), 7);
  EXPECT_EQ(add(21, 2, "attacker"), 21) << "not in exchange for the user's";
  EXPECT_EQ(next(), 0);
  add(22, 2, "attacker");
  EXPECT_EQ(next(), 30) << "the user's turn";
  EXPECT_EQ(next(), 1);
}

TEST_F(WaitingRoomTest, RequestsShareAJobUntilTheyAreReleased) {
  Request other;
  EXPECT_FALSE(room.join(1, waiter(other)));
  add(1);
  EXPECT_TRUE(room.join(1, waiter(other)));
  room.release(&requests[1]);
  room.release(&requests[1]);  // no effect: it does not wait
  EXPECT_EQ(requests[1].resumed, 1);
  EXPECT_EQ(next(), 1);
  EXPECT_EQ(room.answer_to(&other), "done");
  EXPECT_FALSE(room.answer_to(&other)) << "an answer serves one request";
  add(2);
  room.release(&requests[2]);
  EXPECT_EQ(next(), -1) << "nobody waits for the job";
}

TEST_F(WaitingRoomTest, NobodyWaitsAfterItIsClosed) {
  add(1);
  add(2);
  const auto running = room.take();
  room.close();
  EXPECT_EQ(requests[1].resumed + requests[2].resumed, 2);
  Request late;
  EXPECT_FALSE(room.join(running->key, waiter(late)));
  EXPECT_EQ(add(3), 3);
  room.finish(running->key, "done");
  EXPECT_EQ(next(), -1);
}

}  // namespace
}  // namespace gpumeter
