#include "collectors/profiles/desk.hpp"

#include <gtest/gtest.h>

#include <map>

#include "collectors/profiles/asking.hpp"
#include "collectors/profiles/kineto_wire.hpp"

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

TEST(Asking, ReadsWhatItWrites) {
  Asked asked;
  asked.run = "bert large";
  asked.extent.duration = std::chrono::milliseconds(1500);
  asked.folder = "/tmp/t";
  EXPECT_EQ(text_of(asked), "run bert large\nmilliseconds 1500\nfolder /tmp/t\n\n");
  const auto read = parse_asked(text_of(asked));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->run, "bert large");
  EXPECT_EQ(read->extent.duration, asked.extent.duration);
  for (const char* text : {"", "\n", "run a\n", "run a\npid 1\n\n", "pid 0\n\n", "run a\nsteps 1001\n\n",
                           "run a\nmilliseconds 300001\n\n", "run a\nnonsense 1\n\n", "run\n\n"}) {
    EXPECT_FALSE(parse_asked(text)) << text;
  }
}

TEST(Asking, NamesFilesThatNobodyCanPredict) {
  const auto one = path_in("/tmp/", "a/b =#..");
  const auto two = path_in("/tmp", "a/b =#..");
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(one->starts_with("/tmp/gpumeter_a-b-----_") && one->ends_with(".json")) << *one;
  EXPECT_NE(*one, *two);
  EXPECT_FALSE(path_in("relative", "a"));
  EXPECT_FALSE(path_in("/tmp/a=b", "a"));
}

}  // namespace
}  // namespace gpumeter::profiles
