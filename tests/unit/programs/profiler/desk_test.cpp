#include "programs/profiler/desk.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "programs/profiler/kineto.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::profiles {
namespace {

using std::chrono::seconds;

class Door1 final : public Door {
 public:
  std::vector<Process> processes() const override { return {}; }
  Result<Done> ask(int pid, const Order&, Nanoseconds) override {
    if (stages.try_emplace(pid, Progress{Stage::asked, ""}).second) return Done{};
    return Error("busy");
  }
  std::string file_of(const Order& order, int, int inner_pid) const override {
    return kineto::file_of(order.path, inner_pid);
  }
  std::string_view begins() const noexcept override { return "now"; }
  Progress progress(int pid) const override { return stages.contains(pid) ? stages.at(pid) : Progress(); }
  void release(int pid) override { stages.erase(pid); }

  std::map<int, Progress> stages;
};

Request request_of(Door& door, std::vector<int> pids, std::string trigger = kByRequest) {
  Request request{{"alice", "bert"}, std::move(trigger), "why", {"/tmp/x.json", {}}, {}};
  for (const int pid : pids) request.members.push_back({&door, pid, pid + 100});
  return request;
}

std::vector<std::string> lines(const std::vector<Desk::Event>& events) {
  std::vector<std::string> lines;
  for (const Desk::Event& event : events) {
    lines.push_back(event.outcome ? std::string(kStatusNames.of(event.outcome->status)) : event.line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Desk, ReportsEachProcessAndTheEnd) {
  Door1 door;
  Desk desk;
  const auto number = desk.open(request_of(door, {1, 2}), seconds(0));
  ASSERT_TRUE(number);
  EXPECT_EQ(lines(desk.tick(seconds(1))), Lines());
  door.stages[1].stage = Stage::taken;
  EXPECT_EQ(lines(desk.tick(seconds(2))), Lines{"taken 1"});
  door.stages[1].stage = Stage::done;
  door.stages[2].stage = Stage::taken;
  EXPECT_EQ(lines(desk.tick(seconds(3))), (Lines{"done 1 /tmp/x_101.json", "taken 2"}));
  door.stages[2].stage = Stage::done;
  EXPECT_FALSE(desk.seen(*number, 2, "")) << "it is not done";
  EXPECT_EQ(lines(desk.tick(seconds(4))), Lines{"done 2 /tmp/x_102.json"});
  EXPECT_TRUE(door.stages.empty()) << "released";
  EXPECT_TRUE(desk.seen(*number, 1, ""));
  EXPECT_EQ(lines(desk.tick(seconds(5))), Lines()) << "the client looks for the other file";
  EXPECT_TRUE(desk.seen(*number, 2, ""));
  EXPECT_FALSE(desk.seen(*number, 2, "once"));
  EXPECT_EQ(lines(desk.tick(seconds(6))), Lines{"done"});
  EXPECT_FALSE(desk.busy());
}

TEST(Desk, ATraceWithoutItsFileFails) {
  Door1 door;
  Desk desk;
  const auto number = desk.open(request_of(door, {1, 2}), seconds(0));
  ASSERT_TRUE(number);
  door.stages[1].stage = door.stages[2].stage = Stage::done;
  EXPECT_EQ(desk.tick(seconds(1)).size(), 2U);
  EXPECT_TRUE(desk.pids().empty()) << "other requests may order from the processes";
  EXPECT_TRUE(desk.seen(*number, 1, "no file"));
  EXPECT_TRUE(desk.seen(*number, 2, ""));
  const std::vector<Desk::Event> events = desk.tick(seconds(2));
  EXPECT_EQ(lines(events), Lines{"failed"});
  EXPECT_EQ(events.front().outcome->error, "process 1: no file");
}

TEST(Desk, NobodyWaitsForAClientThatLeftOrIsSilent) {
  Door1 door;
  Desk desk;
  const auto left = desk.open(request_of(door, {1}), seconds(0));
  ASSERT_TRUE(left && desk.open(request_of(door, {2}), seconds(0)));
  ASSERT_TRUE(desk.open(request_of(door, {3}, "slow_steps"), seconds(0)));
  for (int pid = 1; pid <= 3; ++pid) door.stages[pid].stage = Stage::done;
  EXPECT_EQ(lines(desk.tick(seconds(1))).back(), "done") << "a condition has no client";
  desk.abandon(*left);
  EXPECT_EQ(lines(desk.tick(seconds(2))), Lines{"done"});
  EXPECT_EQ(lines(desk.tick(Desk::kSee)), Lines());
  EXPECT_EQ(lines(desk.tick(seconds(1) + Desk::kSee)), Lines{"done"});
}

TEST(Desk, RefusesAProcessThatHasAnOrder) {
  Door1 door;
  Desk desk;
  ASSERT_TRUE(desk.open(request_of(door, {2}, "slow_steps"), seconds(0)));
  EXPECT_TRUE(desk.has_automatic());
  const auto refused = desk.open(request_of(door, {1, 2}), seconds(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "process 2: busy");
  EXPECT_FALSE(door.stages.contains(1)) << "nothing is left of the refused request";
}

TEST(Desk, FailsAndTimesOut) {
  Door1 door;
  Desk desk;
  ASSERT_TRUE(desk.open(request_of(door, {1, 2}), seconds(0)));
  door.stages[1] = {Stage::failed, "it ended"};
  EXPECT_EQ(lines(desk.tick(seconds(1))), Lines{"failed 1 it ended"});
  EXPECT_EQ(lines(desk.tick(Desk::kTake - seconds(1))), Lines());
  EXPECT_EQ(lines(desk.tick(Desk::kTake)),
            (Lines{"failed 2 the process did not take the order in time", "timeout"}));

  ASSERT_TRUE(desk.open(request_of(door, {3}), seconds(0)));
  door.stages[3].stage = Stage::taken;
  EXPECT_EQ(lines(desk.tick(seconds(1))), Lines{"taken 3"});
  EXPECT_EQ(desk.tick(seconds(5) + Desk::kWrite).size(), 0U);
  EXPECT_EQ(lines(desk.tick(seconds(6) + Desk::kWrite)).back(), "timeout");
}

TEST(Desk, WithdrawsOnlyWhatNobodyTook) {
  Door1 door;
  Desk desk;
  const auto number = desk.open(request_of(door, {1, 2}), seconds(0));
  ASSERT_TRUE(number);
  door.stages[1].stage = Stage::taken;
  desk.abandon(*number);
  EXPECT_TRUE(door.stages.contains(1));
  EXPECT_FALSE(door.stages.contains(2));
}

using std::chrono::hours;
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

TEST(BudgetBook, IsKeptInAFile) {
  const Tree tree({});
  TestClock clock;
  BudgetBook book(kBudget, clock);
  EXPECT_TRUE(book.resume(tree.path())) << "there is no file";
  book.spend(kBert);
  EXPECT_TRUE(book.keep(tree.path()));
  BudgetBook next(kBudget, clock);
  EXPECT_TRUE(next.resume(tree.path()));
  EXPECT_EQ(next.refusal(kBert), kRecent);
  std::ifstream file(tree / "profiles.state");
  const std::string kept(std::istreambuf_iterator<char>(file), {});
  const std::string records = kept.substr(kept.find('\n'));
  const std::string machine = kept.substr(0, kept.find(' '));
  tree.write("profiles.state", machine + " another-boot" + records);
  BudgetBook after_boot(kBudget, clock);
  EXPECT_TRUE(after_boot.resume(tree.path()));
  EXPECT_EQ(after_boot.refusal(kBert), kRecent);
  tree.write("profiles.state", "another-machine boot" + records);
  BudgetBook elsewhere(kBudget, clock);
  EXPECT_TRUE(elsewhere.resume(tree.path()));
  EXPECT_EQ(elsewhere.refusal(kBert), std::nullopt);
  tree.write("profiles.state", machine + " boot\nnonsense\n");
  EXPECT_FALSE(next.resume(tree.path()));
  EXPECT_TRUE(next.keep("")) << "no folder";
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
