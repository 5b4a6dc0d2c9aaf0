#include "collectors/profiles/budget_book.hpp"

#include <gtest/gtest.h>

namespace gpumeter::profiles {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using Refusal = std::optional<std::string>;

class TestClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return boot; }
  Nanoseconds boottime() const noexcept override { return boot; }
  Nanoseconds realtime() const noexcept override { return unix; }
  void pass(Nanoseconds time) {
    boot += time;
    unix += time;
  }

  Nanoseconds boot = hours(100);
  Nanoseconds unix = hours(400'000);
};

constexpr Budget kBudget{2, 3, hours(1)};
const RunName kBert{"alice", "bert\tlarge"};
const RunName kGpt{"bob", "gpt"};
const Refusal kRecent = "the run was profiled a short time ago";
const Refusal kRunSpent = "the run's budget of the day is spent";
const Refusal kHostSpent = "the machine's budget of the day is spent";

/// Two profiles of bert, the second one hour after the first.
std::string two_profiles(TestClock& clock) {
  BudgetBook book(kBudget, clock);
  book.spend(kBert);
  clock.pass(hours(1));
  book.spend(kBert);
  return book.save();
}

TEST(BudgetBook, LimitsRunsAndTheMachine) {
  TestClock clock;
  BudgetBook book(kBudget, clock);
  EXPECT_EQ(book.refusal(kBert), std::nullopt);
  book.spend(kBert);
  clock.pass(seconds(3599));
  EXPECT_EQ(book.refusal(kBert), kRecent);
  clock.pass(seconds(1));
  EXPECT_EQ(book.refusal(kBert), std::nullopt);
  book.spend(kBert);
  clock.pass(hours(2));
  EXPECT_EQ(book.refusal(kBert), kRunSpent);
  EXPECT_EQ(book.refusal(kGpt), std::nullopt);
  book.spend(kGpt);
  EXPECT_EQ(book.refusal({"eve", "x"}), kHostSpent);
  clock.pass(hours(21));
  EXPECT_EQ(book.refusal(kBert), std::nullopt) << "a day after the first";
}

TEST(BudgetBook, HoldsOverARestart) {
  TestClock clock;
  const std::string saved = two_profiles(clock);
  EXPECT_EQ(saved,
            "spent\talice\tbert\\tlarge\t360000000000000\t1440000000000000000\n"
            "spent\talice\tbert\\tlarge\t363600000000000\t1440003600000000000\n");
  clock.boot += seconds(10);
  clock.unix -= hours(48);  // within one boot, the calendar does not count
  BudgetBook again(kBudget, clock);
  ASSERT_TRUE(again.load(saved, true));
  EXPECT_EQ(again.refusal(kBert), kRunSpent);
  EXPECT_EQ(again.refusal(kGpt), std::nullopt);
  clock.boot += hours(23);
  EXPECT_EQ(again.refusal(kBert), std::nullopt);
  EXPECT_EQ(again.save(), "spent\talice\tbert\\tlarge\t363600000000000\t1440003600000000000\n");
}

TEST(BudgetBook, HoldsOverAReboot) {
  TestClock clock;
  const std::string saved = two_profiles(clock);
  clock.unix += hours(2);
  clock.boot = seconds(30);
  BudgetBook again(kBudget, clock);
  ASSERT_TRUE(again.load(saved, false));
  EXPECT_EQ(again.refusal(kBert), kRunSpent);
  clock.pass(hours(21));
  EXPECT_EQ(again.refusal(kBert), std::nullopt);
  clock.pass(hours(1));
  EXPECT_EQ(again.save(), "");
}

TEST(BudgetBook, ACalendarThatWasSetBackEndsADayFromNow) {
  TestClock clock;
  const std::string saved = two_profiles(clock);
  clock.unix = hours(1);
  clock.boot = seconds(30);
  BudgetBook again(kBudget, clock);
  ASSERT_TRUE(again.load(saved, false));
  EXPECT_EQ(again.refusal(kBert), kRunSpent);
  clock.pass(hours(24));
  EXPECT_EQ(again.refusal(kBert), std::nullopt);
  EXPECT_EQ(again.save(), "");
}

TEST(BudgetBook, RejectsOtherLines) {
  for (const char* text : {"other\n", "spent\ta\tb\t1\n", "spent\ta\tb\t1\tx\n", "spent\ta\tb\t1\t2\t3\n",
                           "spent\ta\tb\t1\t2"}) {
    TestClock clock;
    BudgetBook book({1, 1, hours(1)}, clock);
    book.spend(kBert);
    EXPECT_FALSE(book.load(text, true)) << text;
    EXPECT_EQ(book.refusal(kGpt), kHostSpent) << "the book is unchanged: " << text;
  }
  TestClock clock;
  BudgetBook book(kBudget, clock);
  EXPECT_TRUE(book.load("", true));
  EXPECT_TRUE(book.load("spent\ta\tb\t-2305843009213693951\t2305843009213693951\n", false));
  EXPECT_EQ(book.refusal({"a", "b"}), kRecent) << "a time to come counts as now";
}

}  // namespace
}  // namespace gpumeter::profiles
