#include "base/scheduler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

/// Waits until the condition holds; ctest's timeout ends a test in which it never does.
void until(Scheduler& scheduler, const std::function<bool()>& so) {
  while (!so()) {
    scheduler.check();
    std::this_thread::sleep_for(1ms);
  }
}

class SchedulerTest : public testing::Test {
 protected:
  Nanoseconds in(Nanoseconds time) const { return clock_.monotonic() + time; }

  const SystemClock clock_;
  Scheduler scheduler_{clock_};
};

TEST_F(SchedulerTest, TurnsFollowThePausesAndWakeUps) {
  std::atomic<int> periodic = 0;
  std::atomic<int> asked = 0;
  scheduler_.add({"periodic", 3s, [&] { return ++periodic, Nanoseconds(1ms); }});
  const Scheduler::Id waiting =
      scheduler_.add({"waiting", 3s, [&] { return ++asked, Scheduler::kForever; }}, Scheduler::kForever);
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] { return periodic >= 5; });
  EXPECT_EQ(asked, 0);
  scheduler_.wake(waiting);
  until(scheduler_, [&] { return asked == 1; });
  EXPECT_TRUE(scheduler_.stop(in(10s)));
}

TEST_F(SchedulerTest, AWakeUpDuringATurnIsOneMoreTurn) {
  std::promise<void> may_end;
  std::atomic<int> turns = 0;
  const Scheduler::Id job = scheduler_.add({"job", 3s, [&, gate = may_end.get_future().share()] {
                                              ++turns;
                                              gate.wait();
                                              return Scheduler::kForever;
                                            }});
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] { return turns == 1; });
  scheduler_.wake(job);
  scheduler_.wake(job);
  may_end.set_value();
  until(scheduler_, [&] { return turns == 2; });
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(turns, 2);
  EXPECT_TRUE(scheduler_.stop(in(10s)));
}

// The other thread waits for the next turn meanwhile, and knows of none.
TEST_F(SchedulerTest, APauseThatEndsAfterALongTurnIsNotForgotten) {
  std::atomic<int> turns = 0;
  scheduler_.add({"job", 3s, [&] {
                    std::this_thread::sleep_for(20ms);
                    return ++turns, Nanoseconds(1ms);
                  }});
  ASSERT_TRUE(scheduler_.start());
  for (int i = 0; i < 10'000 && turns < 5; ++i) std::this_thread::sleep_for(1ms);  // without check()
  EXPECT_GE(turns, 5);
  EXPECT_TRUE(scheduler_.stop(in(10s)));
}

TEST_F(SchedulerTest, TurnsOfOneJobNeverOverlap) {
  std::atomic<int> inside = 0;
  std::atomic<int> turns = 0;
  std::atomic<bool> overlapped = false;
  const Scheduler::Id job = scheduler_.add({"job", 3s, [&] {
                                              if (++inside > 1) overlapped = true;
                                              std::this_thread::sleep_for(100us);
                                              --inside;
                                              ++turns;
                                              return Nanoseconds(0);
                                            }});
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] {
    scheduler_.wake(job);
    return turns >= 50;
  });
  EXPECT_FALSE(overlapped);
  EXPECT_TRUE(scheduler_.stop(in(10s)));
}

// 20 jobs hang for good: more than the threads to begin with.
TEST_F(SchedulerTest, LateJobsDelayNobodyElse) {
  std::promise<void> may_end;
  const auto gate = may_end.get_future().share();
  std::atomic<int> late = 0;
  std::atomic<int> hanging = 0;
  std::atomic<int> other = 0;
  for (int i = 0; i < 10; ++i) {
    scheduler_.add({"hangs", 1ms,
                    [&, gate] {
                      ++hanging;
                      gate.wait();
                      return Scheduler::kForever;
                    },
                    [&](bool is_late) { late += is_late ? 1 : -1; }});
  }
  scheduler_.add({"other", 3s, [&] { return ++other, Nanoseconds(1ms); }});
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] { return hanging == 10 && late == 10 && other >= 10; });
  EXPECT_LE(scheduler_.threads(), Scheduler::kMostThreads);
  may_end.set_value();
  until(scheduler_, [&] { return late == 0; });
  until(scheduler_, [&] { return scheduler_.threads() <= Scheduler::kThreads + 1; });
  EXPECT_TRUE(scheduler_.stop(in(10s)));
}

TEST_F(SchedulerTest, MoreLateJobsThanThreadsStopTheRestOnly) {
  std::promise<void> may_end;
  const auto gate = may_end.get_future().share();
  std::atomic<std::size_t> hanging = 0;
  for (std::size_t i = 0; i < Scheduler::kMostThreads + 4; ++i) {
    scheduler_.add({"hangs", 1ms, [&, gate] {
                      ++hanging;
                      gate.wait();
                      return Scheduler::kForever;
                    }});
  }
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] { return hanging == Scheduler::kMostThreads; });
  for (int i = 0; i < 20; ++i) scheduler_.check();
  EXPECT_EQ(scheduler_.threads(), Scheduler::kMostThreads);
  may_end.set_value();
  until(scheduler_, [&] { return hanging == Scheduler::kMostThreads + 4; });
  EXPECT_TRUE(scheduler_.stop(in(10s)));
}

TEST_F(SchedulerTest, ATurnThatNeverReturnsIsLeftBehind) {
  std::promise<void> may_end;
  std::atomic<int> inside = 0;
  const Scheduler::Id job = scheduler_.add({"hangs", 1ms, [&inside, gate = may_end.get_future().share()] {
                                              ++inside;
                                              gate.wait();
                                              return Scheduler::kForever;
                                            }});
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] { return inside == 1; });
  EXPECT_FALSE(scheduler_.remove(job, in(1ms)));
  EXPECT_FALSE(scheduler_.stop(in(1ms)));
  may_end.set_value();
  EXPECT_TRUE(scheduler_.stop(in(10s)));
  EXPECT_EQ(inside, 1);
}

// A part that a reload closed may have a successor of its name by now.
TEST_F(SchedulerTest, ARemovedJobThatHangsIsNotReported) {
  std::promise<void> may_end;
  std::atomic<int> inside = 0;
  std::atomic<int> reports = 0;
  const Scheduler::Id job = scheduler_.add({"hangs", 1ms,
                                            [&inside, gate = may_end.get_future().share()] {
                                              ++inside;
                                              gate.wait();
                                              return Scheduler::kForever;
                                            },
                                            [&](bool) { ++reports; }});
  ASSERT_TRUE(scheduler_.start());
  while (inside == 0) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(scheduler_.remove(job, in(2ms)));
  scheduler_.check();
  may_end.set_value();
  EXPECT_TRUE(scheduler_.stop(in(10s)));
  scheduler_.check();
  EXPECT_EQ(reports, 0);
}

TEST_F(SchedulerTest, ARemovedJobIsDestroyedAndHasNoMoreTurns) {
  const auto owned = std::make_shared<std::atomic<int>>(0);
  const Scheduler::Id job = scheduler_.add({"job", 3s, [owned] { return ++*owned, Nanoseconds(1ms); }});
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] { return *owned > 0; });
  EXPECT_TRUE(scheduler_.remove(job, in(10s)));
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_F(SchedulerTest, AnExceptionIsNoEnd) {
  std::atomic<int> turns = 0;
  const Scheduler::Id job = scheduler_.add({"job", 3s, [&]() -> Nanoseconds {
                                              if (++turns == 1) throw std::bad_alloc();
                                              return Scheduler::kForever;
                                            }});
  ASSERT_TRUE(scheduler_.start());
  until(scheduler_, [&] { return turns == 1; });
  until(scheduler_, [&] {
    scheduler_.wake(job);
    return turns >= 2;
  });
  EXPECT_TRUE(scheduler_.stop(in(10s)));
}

}  // namespace
}  // namespace gpumeter
