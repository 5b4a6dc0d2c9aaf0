#include "collectors/files/sleep.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/fakes/tree.hpp"

namespace gpumeter::files {
namespace {

using std::chrono::seconds;

constexpr PowerState kAwake{false, true, seconds(5)};
constexpr PowerState kAsleep{true, false, seconds(0)};
constexpr PowerState kAlwaysOn{false, false, seconds(0)};

/// Runs the policy second by second; every look finds nothing.
class SleepPolicyTest : public testing::Test {
 protected:
  /// The verdicts of the next `count` seconds as "read 11, rest 7, look 1".
  std::string verdicts(int count, const PowerState& state) {
    static constexpr const char* kNames[] = {"read", "look", "rest"};
    std::string text;
    int run = 0;
    std::string last;
    for (int i = 0; i < count; ++i, now_ += seconds(1)) {
      const SleepPolicy::Verdict verdict = policy_.decide(now_, state);
      if (verdict == SleepPolicy::Verdict::look) policy_.looked(now_);
      const std::string name = kNames[static_cast<int>(verdict)];
      if (name != last && run > 0) text += last + " " + std::to_string(std::exchange(run, 0)) + ", ";
      last = name;
      ++run;
    }
    return text + last + " " + std::to_string(run);
  }

  SleepPolicy policy_;
  Nanoseconds now_ = seconds(100);
};

TEST_F(SleepPolicyTest, OneThatStaysOnIsReadAlways) { EXPECT_EQ(verdicts(1000, kAlwaysOn), "read 1000"); }

TEST_F(SleepPolicyTest, AnIdleOneIsLeftAloneForItsDelayAndThenLookedAtOnceAMinute) {
  EXPECT_EQ(verdicts(10 + 7 + 120, kAwake), "read 10, rest 7, look 1, rest 59, look 1, rest 59");
}

TEST_F(SleepPolicyTest, ASleepingOneIsNeverReadAndReadAgainOnceOthersHaveWokenIt) {
  EXPECT_EQ(verdicts(12, kAwake), "read 10, rest 2");
  EXPECT_EQ(verdicts(1000, kAsleep), "rest 1000");
  EXPECT_EQ(verdicts(12, kAwake), "read 10, rest 2");
}

TEST_F(SleepPolicyTest, ABusyOneIsRead) {
  for (int i = 0; i < 100; ++i, now_ += seconds(1)) {
    EXPECT_EQ(policy_.decide(now_, kAwake), SleepPolicy::Verdict::read);
    policy_.stir(now_);
  }
  EXPECT_EQ(verdicts(12, kAwake), "read 9, rest 3");
}

TEST_F(SleepPolicyTest, WhatStirsIsReadAtOnce) {
  EXPECT_EQ(verdicts(12, kAwake), "read 10, rest 2");
  policy_.stir(now_);
  EXPECT_EQ(verdicts(11, kAwake), "read 10, rest 1");
}

TEST_F(SleepPolicyTest, OneThatMayNotSleepAnyMoreIsReadAtOnce) {
  EXPECT_EQ(verdicts(12, kAwake), "read 10, rest 2");
  EXPECT_EQ(verdicts(3, kAlwaysOn), "read 3");
}

TEST_F(SleepPolicyTest, ALongDelayIsNotCutShortByALook) {
  constexpr PowerState kPatient{false, true, seconds(300)};
  EXPECT_EQ(verdicts(10 + 302 + 303, kPatient), "read 10, rest 302, look 1, rest 301, look 1");
}

using std::chrono::milliseconds;

PowerState state_of(Tree::Files files) {
  const Tree tree(files);
  return RuntimePower(tree.path()).read().value();
}

void expect_state(const PowerState& state, bool suspended, bool may_suspend, Nanoseconds delay) {
  EXPECT_EQ(state.suspended, suspended);
  EXPECT_EQ(state.may_suspend, may_suspend);
  EXPECT_EQ(state.delay, delay);
}

TEST(RuntimePower, ACardThatSleepsByItself) {
  expect_state(state_of({{"power/runtime_status", "active\n"},
                         {"power/control", "auto\n"},
                         {"power/autosuspend_delay_ms", "5000\n"}}),
               false, true, milliseconds(5000));
}

TEST(RuntimePower, ASleepingOneIsNotAskedFurther) {
  for (const char* const status : {"suspended\n", "suspending\n"}) {
    expect_state(state_of({{"power/runtime_status", status}, {"power/control", "auto\n"}}), true, false,
                 milliseconds(0));
  }
}

TEST(RuntimePower, OneThatIsKeptOn) {
  expect_state(state_of({{"power/runtime_status", "active\n"},
                         {"power/control", "on\n"},
                         {"power/autosuspend_delay_ms", "5000\n"}}),
               false, false, milliseconds(0));
}

TEST(RuntimePower, ANegativeDelayKeepsItOnAndNoDelayLetsItSleepAtOnce) {
  expect_state(state_of({{"power/runtime_status", "active\n"},
                         {"power/control", "auto\n"},
                         {"power/autosuspend_delay_ms", "-1\n"}}),
               false, false, milliseconds(0));
  expect_state(state_of({{"power/runtime_status", "active\n"}, {"power/control", "auto\n"}}), false, true,
               milliseconds(0));
}

TEST(RuntimePower, AKernelWithoutItNeverLetsACardSleep) {
  expect_state(state_of({}), false, false, milliseconds(0));
}

TEST(Screens, OneThatIsOnIsEnough) {
  const Tree tree({{"drm/card1/card1-DP-1/dpms", "Off\n"},
                   {"drm/card1/card1-HDMI-A-1/dpms", "On\n"},
                   {"drm/renderD129/dev", "226:129\n"}});
  const Screens screens(tree.path());
  EXPECT_TRUE(screens.any_on());
  tree.write("drm/card1/card1-HDMI-A-1/dpms", "Off\n");
  EXPECT_FALSE(screens.any_on());
}

TEST(Screens, ACardWithoutConnectorsHasNone) {
  EXPECT_FALSE(Screens().any_on());
  EXPECT_FALSE(Screens(Tree({{"drm/card0/dev", "226:0\n"}}).path()).any_on());
}

}  // namespace
}  // namespace gpumeter::files
