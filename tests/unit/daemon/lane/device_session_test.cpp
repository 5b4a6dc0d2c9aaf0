#include "daemon/lane/device_session.hpp"

#include <gtest/gtest.h>

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

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SamplingIntervals kEverySecond{seconds(1), seconds(10), seconds(60)};

TEST(TierSchedule, TheFastestOfThoseDueGoesFirst) {
  TierSchedule schedule(kEverySecond, seconds(0), 0);
  EXPECT_EQ(schedule.next(seconds(0)).tier, Tier::fast);
  EXPECT_EQ(schedule.next(seconds(0)).at, seconds(1));
  EXPECT_EQ(schedule.next(seconds(60)).tier, Tier::fast);
  schedule.done(Tier::fast, seconds(60));
  EXPECT_EQ(schedule.next(seconds(60)).tier, Tier::normal);
  schedule.done(Tier::normal, seconds(60));
  EXPECT_EQ(schedule.next(seconds(60)).tier, Tier::slow);
}

TEST(TierSchedule, ALatePassIsFollowedByTheNextGridPointNotByABurst) {
  TierSchedule schedule(kEverySecond, seconds(0), 0);
  schedule.done(Tier::fast, milliseconds(1004));
  EXPECT_EQ(schedule.next(milliseconds(1004)).at, seconds(2));
  schedule.done(Tier::fast, milliseconds(5300));
  EXPECT_EQ(schedule.next(milliseconds(5300)).at, seconds(6));
}

TEST(TierSchedule, ATierWithFailedReadsIsReadAgainSoonAndThenByTheGrid) {
  TierSchedule schedule(kEverySecond, seconds(0), 0);
  for (const Tier tier : {Tier::fast, Tier::normal}) schedule.done(tier, seconds(300000));
  schedule.done(Tier::slow, seconds(60), 2);
  EXPECT_EQ(schedule.next(seconds(60)).at, seconds(65));
  EXPECT_EQ(schedule.next(seconds(60)).tier, Tier::slow);
  schedule.done(Tier::slow, seconds(65));
  EXPECT_EQ(schedule.next(seconds(65)).at, seconds(120));
}

TEST(TierSchedule, AReadThatAlwaysFailsIsNotHurriedForGood) {
  TierSchedule schedule(kEverySecond, seconds(0), 0);
  for (const Tier tier : {Tier::fast, Tier::normal}) schedule.done(tier, seconds(300000));
  Nanoseconds now = seconds(60);
  const auto failed = [&](std::uint64_t reads) {
    schedule.done(Tier::slow, now, reads);
    now = schedule.next(now).at;
  };
  for (int i = 0; i < 40; ++i) failed(1);
  const Nanoseconds before = now;
  failed(1);
  EXPECT_EQ(now - before, seconds(60));
  failed(2);  // one more failure
  EXPECT_EQ(now - before, seconds(65));
}

TEST(TierSchedule, LanesAreStaggered) {
  TierSchedule schedule(kEverySecond, seconds(100), 0.25);
  EXPECT_EQ(schedule.next(seconds(100)).at, milliseconds(100250));
  schedule.done(Tier::fast, milliseconds(100251));
  EXPECT_EQ(schedule.next(milliseconds(100251)).at, milliseconds(101250));
}

}  // namespace
}  // namespace gpumeter
