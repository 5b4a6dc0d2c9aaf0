#include "collectors/profiles/kineto_door.hpp"

#include <gtest/gtest.h>

namespace gpumeter::profiles {
namespace {

using std::chrono::seconds;

constexpr kineto::Message kFree{kineto::Message::Kind::request, true};
constexpr kineto::Message kBusy{kineto::Message::Kind::request, false};
const Peer kPeer{10, 1000, "a"};
const Order kOrder{"/tmp/x.json", {std::nullopt, seconds(5)}};

TEST(KinetoDoor, GivesAnOrderOnceAndSeesItsEnd) {
  KinetoDoor door;
  EXPECT_FALSE(door.ask(10, kOrder, seconds(0))) << "the process is not known";
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(0), seconds(100)), "");
  EXPECT_TRUE(door.ask(10, kOrder, seconds(1)));
  EXPECT_FALSE(door.ask(10, kOrder, seconds(1))) << "it has an order";
  EXPECT_EQ(door.hear(kPeer, kBusy, seconds(2), seconds(100)), "") << "somebody else's trace";
  EXPECT_EQ(door.progress(10).stage, Stage::asked);
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(5), seconds(100)), kineto::text_of(kOrder, seconds(100)));
  EXPECT_EQ(door.progress(10).stage, Stage::taken);
  EXPECT_EQ(door.hear(kPeer, kBusy, seconds(10), seconds(100)), "");
  EXPECT_EQ(door.progress(10).stage, Stage::taken);
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(15), seconds(100)), "");
  EXPECT_EQ(door.progress(10).stage, Stage::done);
  door.release(10);
  EXPECT_EQ(door.progress(10).stage, Stage::none);
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(20), seconds(100)), "");
}

TEST(KinetoDoor, AnOrderThatCouldNotBeSentIsGivenAgain) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, kOrder, seconds(0)));
  EXPECT_NE(door.hear(kPeer, kFree, seconds(1), seconds(100)), "");
  door.unsent(10);
  EXPECT_NE(door.hear(kPeer, kFree, seconds(2), seconds(100)), "");
}

TEST(KinetoDoor, AProcessThatNeverTurnsBusyRejectedTheOrder) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, {"/tmp/x.json", {std::nullopt, seconds(60)}}, seconds(0)));
  door.hear(kPeer, kFree, seconds(5), seconds(100));
  door.hear(kPeer, kFree, seconds(10), seconds(100));
  EXPECT_EQ(door.progress(10).stage, Stage::taken) << "the poll may have crossed the order";
  door.hear(kPeer, kFree, seconds(15), seconds(100));
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
}

TEST(KinetoDoor, PollsMayBeTooRareToSeeATrace) {
  for (const Extent& extent : {Extent{std::nullopt, seconds(1)}, Extent{3, seconds(5)}}) {
    KinetoDoor door;
    door.hear(kPeer, kFree, seconds(0), seconds(100));
    ASSERT_TRUE(door.ask(10, {"/tmp/x.json", extent}, seconds(0)));
    door.hear(kPeer, kFree, seconds(5), seconds(100));
    door.hear(kPeer, kFree, seconds(12), seconds(100));
    EXPECT_EQ(door.progress(10).stage, Stage::done);
  }
}

TEST(KinetoDoor, AShortTraceThatShouldHaveBeenSeenWasRejected) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, {"/tmp/x.json", {std::nullopt, seconds(1)}}, seconds(0)));
  for (const int at : {5, 10, 15}) door.hear(kPeer, kFree, seconds(at), seconds(100));
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
}

TEST(KinetoDoor, ForgetsSilentProcessesAndFailsTheirOrders) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, kOrder, seconds(0)));
  door.tick(seconds(59));
  EXPECT_EQ(door.size(), 1U);
  door.tick(seconds(60));
  EXPECT_EQ(door.size(), 0U);
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
  door.release(10);
  EXPECT_EQ(door.progress(10).stage, Stage::none);
}

TEST(KinetoDoor, AnOrderIsForTheProcessThatWasThere) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, kOrder, seconds(0)));
  EXPECT_EQ(door.hear({10, 1001, "a"}, kFree, seconds(1), seconds(100)), "") << "another user";
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
  door.release(10);
  ASSERT_TRUE(door.ask(10, kOrder, seconds(2)));
  EXPECT_EQ(door.hear({10, 1001, "b"}, kFree, seconds(3), seconds(100)), "") << "another program";
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
}

TEST(KinetoDoor, OneUserCannotKeepOthersOut) {
  KinetoDoor door;
  for (int user = 0; user < 8; ++user) {
    for (int i = 0; i < 1100; ++i) {
      const int pid = user * 10'000 + i + 1;
      door.hear({pid, static_cast<std::uint32_t>(user), "a"}, kFree, seconds(i), seconds(100));
    }
  }
  EXPECT_EQ(door.size(), KinetoDoor::kMost);
  door.hear({99'999, 77, "a"}, kFree, seconds(2000), seconds(100));
  EXPECT_EQ(door.size(), KinetoDoor::kMost);
  EXPECT_TRUE(door.ask(99'999, kOrder, seconds(2000)));
}

}  // namespace
}  // namespace gpumeter::profiles
