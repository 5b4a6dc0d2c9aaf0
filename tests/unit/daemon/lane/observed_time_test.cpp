#include <gtest/gtest.h>

#include "daemon/lane/device_session.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

using std::chrono::seconds;

class ObservedTimeTest : public testing::Test {
 protected:
  Nanoseconds begin() { return observed_.begin(Tier::fast, clock_, seconds(4)); }
  /// A complete pass, `after` the previous one.
  Nanoseconds pass(int after) {
    clock_.advance(seconds(after));
    const Nanoseconds elapsed = begin();
    observed_.complete(Tier::fast, elapsed);
    return elapsed;
  }

  FakeClock clock_;
  ObservedTime observed_;
};

TEST_F(ObservedTimeTest, CountsFromPassToPass) {
  EXPECT_EQ(pass(0), seconds(0));
  EXPECT_EQ(pass(1), seconds(1));
  EXPECT_EQ(observed_.total(Tier::fast), seconds(1));
  EXPECT_EQ(observed_.total(Tier::slow), seconds(0));
}

TEST_F(ObservedTimeTest, AMissedDeadlineIsAGap) {
  pass(0);
  EXPECT_EQ(pass(4), seconds(4));
  EXPECT_EQ(pass(5), seconds(0));
  EXPECT_EQ(pass(1), seconds(1));
}

TEST_F(ObservedTimeTest, APassThatIsNotCompleteIsMadeUpForByTheNext) {
  pass(0);
  clock_.advance(seconds(1));
  begin();
  EXPECT_EQ(observed_.total(Tier::fast), seconds(0));
  EXPECT_EQ(pass(1), seconds(2));
  EXPECT_EQ(observed_.total(Tier::fast), seconds(2));
}

TEST_F(ObservedTimeTest, AFaultThatIsTooLongIsNotObserved) {
  pass(0);
  for (int i = 0; i < 4; ++i) {
    clock_.advance(seconds(1));
    begin();
  }
  EXPECT_EQ(pass(1), seconds(0));
  EXPECT_EQ(pass(1), seconds(1));
  EXPECT_EQ(observed_.total(Tier::fast), seconds(1));
}

TEST_F(ObservedTimeTest, ASuspendIsAGap) {
  pass(0);
  clock_.suspend(seconds(3600));
  EXPECT_EQ(pass(1), seconds(0));
  EXPECT_EQ(pass(1), seconds(1));
}

TEST_F(ObservedTimeTest, IsNotShorterAfterARestart) {
  for (const double before : {4.237574443, 0.1, 86400.000000001, 9e6 / 7}) {
    ObservedTime after;
    after.resume(Tier::fast, before);
    EXPECT_NEAR(to_seconds(after.total(Tier::fast)), before, 5e-10);
    ObservedTime again;
    again.resume(Tier::fast, to_seconds(after.total(Tier::fast)));
    EXPECT_EQ(again.total(Tier::fast), after.total(Tier::fast));
  }
}

TEST_F(ObservedTimeTest, ALostDeviceIsAGap) {
  pass(0);
  observed_.interrupt_all();
  EXPECT_EQ(pass(1), seconds(0));
}

}  // namespace
}  // namespace gpumeter
