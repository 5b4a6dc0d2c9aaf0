#include "base/worker.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <stdexcept>

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

void wait_until(const auto& is_so) {
  while (!is_so()) std::this_thread::sleep_for(1ms);
}

/// State shared by a turn and its test: the turn hangs while the door is closed.
struct Door {
  std::atomic<int> turns{0};
  std::atomic<bool> closed{false};
  void pass() {
    ++turns;
    while (closed) std::this_thread::sleep_for(1ms);
  }
};

class WorkerTest : public testing::Test {
 protected:
  Worker::Turn turn(std::optional<Nanoseconds> pause) {
    return [door = door_, pause] {
      door->pass();
      return pause;
    };
  }
  Nanoseconds in(Nanoseconds time) const { return clock_.monotonic() + time; }

  const SystemClock clock_;
  const std::shared_ptr<Door> door_ = std::make_shared<Door>();
  Worker worker_{clock_};
};

TEST_F(WorkerTest, TurnsFollowEachOtherAfterTheirPause) {
  ASSERT_TRUE(worker_.start("turns", turn(1ms)));
  wait_until([&] { return door_->turns >= 3; });
  EXPECT_TRUE(worker_.stop());
}

TEST_F(WorkerTest, WakingEndsAPause) {
  ASSERT_TRUE(worker_.start("waked", turn(Worker::kForever)));
  wait_until([&] { return worker_.is_idle(); });
  EXPECT_EQ(door_->turns, 1);
  worker_.wake();
  EXPECT_TRUE(door_->turns == 2 || !worker_.is_idle());
  wait_until([&] { return worker_.is_idle(); });
  EXPECT_EQ(door_->turns, 2);
}

TEST_F(WorkerTest, WakingDuringATurnMakesAnotherOne) {
  door_->closed = true;
  ASSERT_TRUE(worker_.start("waked", turn(Worker::kForever)));
  for (int i = 0; i < 3; ++i) worker_.wake();
  door_->closed = false;
  wait_until([&] { return worker_.is_idle(); });
  EXPECT_EQ(door_->turns, 2);
}

TEST_F(WorkerTest, ATurnMayEndTheThread) {
  ASSERT_TRUE(worker_.start("once", turn(std::nullopt)));
  EXPECT_TRUE(worker_.join());
  EXPECT_EQ(door_->turns, 1);
  EXPECT_TRUE(worker_.is_idle());
}

TEST_F(WorkerTest, TheFirstTurnIsMadeAlsoIfTheWorkerIsGone) {
  {
    Worker worker(clock_);
    ASSERT_TRUE(worker.start("alone", turn(std::nullopt)));
  }
  wait_until([&] { return door_->turns == 1; });
}

TEST_F(WorkerTest, AThreadThatHangsIsLeftBehindAndFreesWhatItOwns) {
  door_->closed = true;
  auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = owned;
  ASSERT_TRUE(worker_.start("hangs", [owned = std::move(owned), turn = turn(1ms)] { return turn(); }));
  wait_until([&] { return door_->turns == 1; });
  EXPECT_FALSE(worker_.stop(in(10ms)));
  EXPECT_TRUE(worker_.is_busy_for(5ms));
  EXPECT_FALSE(watched.expired());
  door_->closed = false;
  wait_until([&] { return watched.expired(); });
  EXPECT_EQ(door_->turns, 1);
}

TEST_F(WorkerTest, TheEndIsCalledOnceAfterTheLastTurn) {
  std::atomic<int> ends = 0;
  ASSERT_TRUE(worker_.start("ends", turn(Worker::kForever), [&] { ++ends; }));
  wait_until([&] { return worker_.is_idle(); });
  EXPECT_EQ(ends, 0);
  EXPECT_TRUE(worker_.stop(in(10s)));
  EXPECT_EQ(ends, 1);
}

TEST_F(WorkerTest, ATurnThatThrowsIsFollowedByAnother) {
  ASSERT_TRUE(worker_.start("throws", [door = door_]() -> std::optional<Nanoseconds> {
    if (++door->turns == 1) throw std::runtime_error("no");
    return Worker::kForever;
  }));
  wait_until([&] { return door_->turns == 2; });
}

TEST_F(WorkerTest, BusySinceIsThatOfTheTurnUnderWay) {
  door_->closed = true;
  EXPECT_FALSE(worker_.busy_since());
  const Nanoseconds before = clock_.monotonic();
  ASSERT_TRUE(worker_.start("busy", turn(Worker::kForever)));
  ASSERT_TRUE(worker_.busy_since());
  EXPECT_GE(*worker_.busy_since(), before);
  EXPECT_FALSE(worker_.is_busy_for(1h));
  door_->closed = false;
  wait_until([&] { return !worker_.busy_since(); });
  EXPECT_GT(worker_.last_turn(), before);
}

TEST_F(WorkerTest, ItsThreadBlocksAllSignals) {
  std::atomic<bool> is_blocked = false;
  ASSERT_TRUE(worker_.start("signals", [&]() -> std::optional<Nanoseconds> {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    is_blocked = sigismember(&mask, SIGTERM) == 1;
    return std::nullopt;
  }));
  EXPECT_TRUE(worker_.join());
  EXPECT_TRUE(is_blocked);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

TEST_F(WorkerTest, AStoppedWorkerMayBeStoppedAgain) {
  ASSERT_TRUE(worker_.start("stops", turn(1ms)));
  EXPECT_TRUE(worker_.stop());
  EXPECT_TRUE(worker_.stop());
  EXPECT_TRUE(worker_.is_stopping());
}

TEST(MailboxTest, MessagesComeInOrderAndOnce) {
  Mailbox<int> mailbox;
  for (const int message : {1, 2, 3}) mailbox.post(message);
  EXPECT_EQ(mailbox.take(), (std::vector{1, 2, 3}));
  EXPECT_TRUE(mailbox.take().empty());
}

TEST(MailboxTest, AMessageReplacesThoseThatItMakesObsolete) {
  Mailbox<int> mailbox;
  for (const int message : {1, 2, 3}) mailbox.post(message);
  mailbox.post(4, [](int waiting) { return waiting != 2; });
  EXPECT_EQ(mailbox.take(), (std::vector{2, 4}));
}

}  // namespace
}  // namespace gpumeter
