#include "collectors/sources/runtime_power.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

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

}  // namespace
}  // namespace gpumeter
