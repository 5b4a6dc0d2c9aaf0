#include "daemon/observed_time.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

using std::chrono::seconds;

class ObservedTimeTest : public testing::Test {
 protected:
  Nanoseconds begin() { return observed_.begin(Tier::fast, clock_, seconds(4)); }

  FakeClock clock_;
  ObservedTime observed_;
};

TEST_F(ObservedTimeTest, CountsFromPassToPass) {
  EXPECT_EQ(begin(), seconds(0));
  clock_.advance(seconds(1));
  EXPECT_EQ(begin(), seconds(1));
  observed_.complete(Tier::fast, seconds(1));
  EXPECT_EQ(observed_.total(Tier::fast), seconds(1));
  EXPECT_EQ(observed_.total(Tier::slow), seconds(0));
}

TEST_F(ObservedTimeTest, AMissedDeadlineIsAGap) {
  begin();
  clock_.advance(seconds(4));
  EXPECT_EQ(begin(), seconds(4));
  clock_.advance(seconds(5));
  EXPECT_EQ(begin(), seconds(0));
  clock_.advance(seconds(1));
  EXPECT_EQ(begin(), seconds(1));
}

TEST_F(ObservedTimeTest, ASuspendIsAGap) {
  begin();
  clock_.advance(seconds(1));
  clock_.suspend(seconds(3600));
  EXPECT_EQ(begin(), seconds(0));
  clock_.advance(seconds(1));
  EXPECT_EQ(begin(), seconds(1));
}

TEST_F(ObservedTimeTest, ALostDeviceIsAGap) {
  begin();
  clock_.advance(seconds(1));
  observed_.interrupt_all();
  EXPECT_EQ(begin(), seconds(0));
}

}  // namespace
}  // namespace gpumeter
