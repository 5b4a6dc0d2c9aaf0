#include "collectors/sources/sleep_policy.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter {
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

}  // namespace
}  // namespace gpumeter
