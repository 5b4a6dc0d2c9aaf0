#include "systemd/hot_plug.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

namespace gpumeter::systemd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// tests/e2e/hot_plug_test.py tests the events with udev's own messages.
TEST(HotPlug, IsSilentWhereNothingComesOrGoes) {
  constexpr const char* kNoSuchSubsystem[] = {"gpumeter-test"};
  auto opened = HotPlug::open(kNoSuchSubsystem);
  if (!opened) GTEST_SKIP() << opened.error().message();
  HotPlug hot_plug = *std::move(opened);
  EXPECT_FALSE(hot_plug.look_again(seconds(1)));
  pollfd ready{hot_plug.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  EXPECT_NE(fcntl(hot_plug.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

/// The times in milliseconds at which `debounce` answers events at the given times.
std::vector<int> answers(const std::vector<int>& events) {
  Debounce debounce(milliseconds(300), seconds(3));
  std::vector<int> answers;
  std::size_t next = 0;
  for (int now = 0; now < 10000; ++now) {
    if (next < events.size() && events[next] == now) debounce.event(milliseconds(events[next++]));
    if (debounce.take(milliseconds(now))) answers.push_back(now);
  }
  return answers;
}

TEST(Debounce, NothingIsNotAnswered) { EXPECT_EQ(answers({}), std::vector<int>{}); }

TEST(Debounce, ABurstIsAnsweredOnceWhenItPauses) {
  EXPECT_EQ(answers({100, 200, 450}), std::vector<int>{750});
}

TEST(Debounce, BurstsApartAreAnsweredEach) { EXPECT_EQ(answers({100, 5000}), (std::vector<int>{400, 5300})); }

TEST(Debounce, OneThatDoesNotPauseIsAnsweredAllTheSame) {
  std::vector<int> events;
  for (int at = 100; at < 4000; at += 100) events.push_back(at);
  EXPECT_EQ(answers(events), (std::vector<int>{3100, 4200}));
}

TEST(Debounce, SaysWhenItIsDue) {
  Debounce debounce(milliseconds(300), seconds(3));
  EXPECT_EQ(debounce.due(), std::nullopt);
  debounce.event(seconds(1));
  EXPECT_EQ(debounce.due(), std::optional<Nanoseconds>(milliseconds(1300)));
  EXPECT_FALSE(debounce.take(milliseconds(1299)));
  EXPECT_TRUE(debounce.take(milliseconds(1300)));
  EXPECT_EQ(debounce.due(), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::systemd
