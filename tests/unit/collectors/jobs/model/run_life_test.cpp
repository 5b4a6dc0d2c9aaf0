#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

constexpr std::int64_t kNow = 1'700'000'000;  // time of JobsBench

/// Start, course and end of a run with several processes. Times are seconds since kNow.
class RunLife : public testing::Test {
 protected:
  void start(int pid, std::int64_t at) {
    jobs_.send(pid, "_e{9,1}:run_start|a|d:" + std::to_string(kNow + at) + "|#run:a");
  }
  void stop(int pid, const std::string& status = "success") {
    jobs_.send(pid, "_e{8,7}:run_stop|" + status + "|#run:a");
  }
  void send(int pid, const std::string& line) { jobs_.send(pid, line + "|#run:a"); }

  /// Returns "start 0, time 10, success at 10", without values that are not on the page.
  std::string life() {
    std::string text;
    const auto add = [&](const char* what, double value) {
      char number[64];
      std::snprintf(number, sizeof number, "%s%s %.15g", text.empty() ? "" : ", ", what, value);
      text += number;
    };
    for (const PageLine& line : jobs_.lines()) {
      const std::string_view name = line.family;
      if (name == "ml_run_start_timestamp_seconds") add("start", line.value - kNow);
      if (name == "ml_run_time_seconds") add("time", line.value);
      if (name == "ml_run_stop_timestamp_seconds") {
        add((line.labels.back().second + " at").c_str(), line.value - kNow);
      }
    }
    return text;
  }

  JobsBench jobs_;
};

TEST_F(RunLife, ARepeatedStartOfTheLastRankIsNoNewRun) {
  for (const int pid : {10, 11, 12}) start(pid, 0);
  jobs_.wait(10);
  jobs_.send(12, "ml.target:0.7|g|#run:a,metric:m\nml.eval:0.8|g|#run:a,metric:m\nml.step:5|g|#run:a");
  jobs_.wait(10);
  for (const int pid : {10, 11}) stop(pid);
  for (int minute = 0; minute < 2; ++minute) {
    jobs_.wait(60);
    start(12, 0);
  }
  EXPECT_EQ(life(), "start 0, time 140");
  stop(12);
  EXPECT_EQ(life(), "start 0, success at 140, time 140");
  EXPECT_EQ(jobs_.page({"ml_step", "ml_eval_best_value", "ml_time_to_solution_seconds"}),
            "ml_step{run=\"a\",user=\"alice\"} 5\n"
            "ml_eval_best_value{run=\"a\",user=\"alice\",metric=\"m\"} 0.8\n"
            "ml_time_to_solution_seconds{run=\"a\",user=\"alice\",metric=\"m\"} 10\n");
}

TEST_F(RunLife, ALaterStartOfAProcessThatStoppedIsANewRun) {
  start(10, 0);
  jobs_.wait(10);
  stop(10, "aborted");
  jobs_.wait(20);
  start(10, 0);  // arrives late, from before the stop
  EXPECT_EQ(life(), "start 0, time 30");
  stop(10);
  start(10, 29);
  EXPECT_EQ(life(), "start 29, time 1");
  stop(10);
  EXPECT_EQ(life(), "start 29, success at 30, time 1");
}

TEST_F(RunLife, TheEarliestStartOfTheRanksIsTheRuns) {
  jobs_.wait(10.5);
  start(9, 10);  // cut to a second
  EXPECT_EQ(life(), "start 10, time 0.5");
  jobs_.wait(0.5);
  start(10, 8);
  start(11, 6);
  start(12, 7);
  EXPECT_EQ(life(), "start 6, time 5");
  jobs_.wait(1);
  start(11, 6);
  EXPECT_EQ(life(), "start 6, time 6");
}

TEST_F(RunLife, ARankThatIsHeardAfterTheFirstOnesEndIsOfTheSameRun) {
  start(10, 0);
  jobs_.wait(10);
  stop(10);
  jobs_.wait(10);
  start(11, 1);
  EXPECT_EQ(life(), "start 0, time 20");
  jobs_.wait(1);
  stop(11);
  EXPECT_EQ(life(), "start 0, success at 21, time 21");
}

TEST_F(RunLife, AStartHasItsMilliseconds) {
  jobs_.wait(5);
  const std::string begun = "_e{9,1}:run_start|a|d:" + std::to_string(kNow + 2);
  jobs_.send(10, begun + "|ms:500|#run:a");
  EXPECT_EQ(life(), "start 2.5, time 2.5");
  jobs_.send(10, begun + "|ms:500|#run:a");  // repeated
  EXPECT_EQ(life(), "start 2.5, time 2.5");
  jobs_.send(11, "_e{9,1}:run_start|b|d:" + std::to_string(kNow + 5) + "|ms:99999|#run:b");
  EXPECT_EQ(life(), "start 2.5, time 2.5, start 5, time 0") << "never after now";
}

TEST_F(RunLife, AStartIsNotAfterNowNorBeforeItsProcessOrTheMachine) {
  jobs_.born(10, 100);
  start(10, 50);
  EXPECT_EQ(life(), "start 0, time 0");
  jobs_.send(11, "_e{9,1}:run_start|b|d:99999999999999999|#run:b");
  jobs_.send(12, "_e{9,1}:run_start|c|d:0|#run:c");
  jobs_.born(13, 30);
  jobs_.send(13, "_e{9,1}:run_start|d|d:" + std::to_string(kNow - 31) + "|#run:d");
  jobs_.born(14, 30);
  jobs_.send(14, "_e{9,1}:run_start|e|d:" + std::to_string(kNow - 32) + "|#run:e");
  jobs_.send(15,
             "_e{9,1}:run_start|f|d:" + std::to_string(std::numeric_limits<std::int64_t>::min()) + "|#run:f");
  jobs_.send(16, "_e{9,1}:run_start|g|d:x|#run:g");
  EXPECT_EQ(jobs_.page({"ml_run_time_seconds"}),
            "ml_run_time_seconds{run=\"a\",user=\"alice\"} 0\n"
            "ml_run_time_seconds{run=\"b\",user=\"alice\"} 0\n"
            "ml_run_time_seconds{run=\"c\",user=\"alice\"} 5000\n"  // start of the machine
            "ml_run_time_seconds{run=\"d\",user=\"alice\"} 31\n"    // cut to a second
            "ml_run_time_seconds{run=\"e\",user=\"alice\"} 30\n"
            "ml_run_time_seconds{run=\"f\",user=\"alice\"} 5000\n"
            "ml_run_time_seconds{run=\"g\",user=\"alice\"} 0\n");
}

TEST_F(RunLife, EndsWhenItsLastMessageWasSentAlsoIfThatIsReadLate) {
  jobs_.send(10, "_e{9,1}:run_start|a|#run:a");
  jobs_.wait(30);
  jobs_.send_late(10, "_e{8,7}:run_stop|success|#run:a", 13);
  EXPECT_EQ(jobs_.page({"ml_run_time_seconds"}), "ml_run_time_seconds{run=\"a\",user=\"alice\"} 17\n");
}

TEST_F(RunLife, ADaemonThatIsStartedLateTakesUpTheRunAtItsStart) {
  send(10, "ml.step:70|g");
  EXPECT_EQ(life(), "start 0, time 0");
  jobs_.wait(20);
  start(10, -300);
  EXPECT_EQ(life(), "start -300, time 320");
}

TEST_F(RunLife, IsOverWhenAllOfItsProcessesAre) {
  start(10, 0);
  start(11, 0);
  send(12, "ml.steps:1|c");
  jobs_.wait(10);
  stop(10);
  EXPECT_EQ(life(), "start 0, time 10");
  jobs_.wait(10);
  stop(11);
  EXPECT_EQ(life(), "start 0, time 20");  // one has not stopped
  jobs_.wait(10);
  jobs_.kill(12);
  EXPECT_EQ(life(), "start 0, success at 30, time 30");
  jobs_.wait(10);
  EXPECT_EQ(life(), "start 0, success at 30, time 30");
}

TEST_F(RunLife, ThatEndsWithoutAWordIsLostAndStaysForTenMinutes) {
  start(10, 0);
  jobs_.wait(100);
  EXPECT_EQ(life(), "start 0, time 100");
  jobs_.kill(10);
  EXPECT_EQ(life(), "start 0, lost at 100, time 100");
  jobs_.wait(599);
  EXPECT_EQ(life(), "start 0, lost at 100, time 100");
  jobs_.wait(1);
  EXPECT_EQ(life(), "");
}

TEST_F(RunLife, HasTheWorstStatusOfItsProcesses) {
  for (const int pid : {10, 11, 12}) start(pid, 0);
  stop(10);
  jobs_.kill(11);
  EXPECT_EQ(life(), "start 0, time 0");
  stop(12);
  EXPECT_EQ(life(), "start 0, lost at 0, time 0");
  for (const int pid : {20, 21, 22}) jobs_.send(pid, "_e{9,1}:run_start|b|#run:b");
  jobs_.send(20, "_e{8,7}:run_stop|aborted|#run:b");
  jobs_.kill(21);
  jobs_.send(22, "_e{8,7}:run_stop|success|#run:b");
  EXPECT_EQ(jobs_.page({"ml_run_stop_timestamp_seconds"}),
            "ml_run_stop_timestamp_seconds{run=\"a\",user=\"alice\",status=\"lost\"} 1700000000\n"
            "ml_run_stop_timestamp_seconds{run=\"b\",user=\"alice\",status=\"aborted\"} 1700000000\n");
}

TEST_F(RunLife, ARestartTakesTheStopAway) {
  start(10, 0);
  send(10, "ml.step:9|g");
  jobs_.wait(10);
  jobs_.kill(10);
  EXPECT_EQ(life(), "start 0, lost at 10, time 10");
  jobs_.wait(10);
  start(11, 20);
  send(11, "ml.step:5|g");
  EXPECT_EQ(life(), "start 0, time 20");
  EXPECT_EQ(
      jobs_.page({"ml_run_restarts_total", "ml_lost_steps_total"}),
      "ml_run_restarts_total{run=\"a\",user=\"alice\"} 1\nml_lost_steps_total{run=\"a\",user=\"alice\"} 4\n");
  stop(11);
  EXPECT_EQ(life(), "start 0, success at 20, time 20");
}

TEST_F(RunLife, WhatOnlySendsValuesOrHasNoNumberIsNotLost) {
  send(10, "ml.steps:1|c");
  start(0, 0);  // in another pid namespace
  jobs_.kill(10);
  jobs_.wait(300);
  EXPECT_EQ(life(), "start 0, time 300");
  jobs_.wait(300);
  EXPECT_EQ(life(), "start 0, time 0");
}

TEST_F(RunLife, ARunInAContainerEndsAlthoughItsUserSendsOn) {
  for (int run = 0; run < 30; ++run) {  // one after the other, each of a process in another pid namespace
    jobs_.send(0, "ml.steps:1|c|#run:r" + std::to_string(run));
    jobs_.wait(60);
    jobs_.tick();
  }
  // For 10 minutes a run may go on; it last did so 9 minutes after its message, and stays for 10 more.
  EXPECT_EQ(jobs_.model.usage().members, 9U);
  EXPECT_EQ(jobs_.model.usage().runs, 18U);
}

TEST_F(RunLife, AStopThatWasStillToBeReadIsNoLoss) {
  start(10, 0);
  send(10, "ml.step:1|g");
  jobs_.wait(10);
  jobs_.kill(10);
  jobs_.model.tick(jobs_.now, [&] { stop(10); });
  EXPECT_EQ(life(), "start 0, success at 10, time 10");
  EXPECT_EQ(jobs_.page({"ml_run_restarts_total"}), "ml_run_restarts_total{run=\"a\",user=\"alice\"} 0\n");
}

// Data loaders are forked from a rank, repeat its run_start, and end with it without a run_stop.
TEST_F(RunLife, AForkOfAProcessTakesPartForIt) {
  jobs_.born(10, 60);
  start(10, 0);
  jobs_.born(20, 0, {10, 5});
  start(20, 0);
  jobs_.born(21, 0, {10, 5});
  jobs_.send(21, "ml.phases:1|c|#run:a\nml.phase.seconds:1|d|#run:a");
  jobs_.wait(10);
  jobs_.kill(20);
  EXPECT_EQ(life(), "start 0, time 10");
  stop(21, "aborted");  // the fork ended, not the run
  jobs_.wait(10);
  jobs_.born(22, 0, {10, 5});
  start(22, 0);
  stop(10);
  EXPECT_EQ(life(), "start 0, success at 20, time 20");
  jobs_.wait(60);
  start(22, 0);  // a notebook keeps its loader
  EXPECT_EQ(life(), "start 0, success at 20, time 20");
  jobs_.kill(10);
  jobs_.kill(22);
  EXPECT_EQ(life(), "start 0, success at 20, time 20");
}

TEST_F(RunLife, AForkIsKnownByAStartFromBeforeItBeganToo) {
  jobs_.born(20, 10, {7});  // child of a fork server
  start(20, -30);
  EXPECT_EQ(life(), "start -10, time 10");  // the daemon was started after the run
  jobs_.born(10, 60);
  start(10, -30);
  EXPECT_EQ(life(), "start -30, time 30");
  jobs_.kill(20);
  EXPECT_EQ(life(), "start -30, time 30");
  stop(10);
  EXPECT_EQ(life(), "start -30, success at 0, time 30");
}

TEST_F(RunLife, AProcessThatAnotherLaunchedIsOnItsOwn) {
  start(10, 0);
  jobs_.wait(10);
  jobs_.born(20, 1, {10});
  start(20, 9);
  stop(10);
  EXPECT_EQ(life(), "start 0, time 10");
  jobs_.kill(20);
  EXPECT_EQ(life(), "start 0, lost at 10, time 10");
}

TEST_F(RunLife, AForkGoesOnInPlaceOfAProcessThatIsGone) {
  jobs_.born(10, 60);
  start(10, 0);
  jobs_.born(20, 0, {10});
  start(20, 0);
  jobs_.kill(10);  // the fork became a daemon
  EXPECT_EQ(life(), "start 0, time 0");
  jobs_.wait(10);
  stop(20);
  EXPECT_EQ(life(), "start 0, success at 10, time 10");
}

// A launcher restarts a killed rank while the rank's data loaders are still alive.
TEST_F(RunLife, TheNextAttemptIsNoPartOfWhatTheForksOfAKilledProcessGoOnWith) {
  jobs_.born(10, 60);
  start(10, 0);
  send(10, "ml.step:50|g");
  jobs_.born(20, 0, {10});
  start(20, 0);
  jobs_.kill(10);
  EXPECT_EQ(life(), "start 0, time 0");
  jobs_.wait(5);
  jobs_.born(30, 1);
  start(30, 4);
  send(30, "ml.step:40|g");
  jobs_.kill(20);
  EXPECT_EQ(life(), "start 0, time 5");
  stop(30);
  EXPECT_EQ(life(), "start 0, success at 5, time 5");
  EXPECT_EQ(jobs_.page({"ml_run_restarts_total", "ml_lost_steps_total"}),
            "ml_run_restarts_total{run=\"a\",user=\"alice\"} 1\n"
            "ml_lost_steps_total{run=\"a\",user=\"alice\"} 10\n");
}

TEST_F(RunLife, AForkThatEndsAfterAKilledProcessIsLostWithIt) {
  jobs_.born(10, 60);
  start(10, 0);
  jobs_.born(20, 0, {10});
  start(20, 0);
  jobs_.kill(10);
  EXPECT_EQ(life(), "start 0, time 0");
  jobs_.wait(5);
  jobs_.kill(20);
  EXPECT_EQ(life(), "start 0, lost at 5, time 5");
}

/// The processes that are joined with GPUs: pid and run.
std::string processes(JobsBench& bench) {
  std::string text;
  bench.model.tick(bench.now);
  for (const RunProcess& process : bench.model.runs().processes) {
    text += std::to_string(process.id.pid) + " " + process.run.run + "\n";
  }
  return text;
}

TEST(RunProcesses, AreOfTheRunThatTheProcessIsAtNow) {
  JobsBench bench;
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.send(2, "_e{9,1}:run_start|a|#run:a");
  EXPECT_EQ(processes(bench), "1 a\n2 a\n");
  bench.send(1, "_e{8,7}:run_stop|success|#run:a");
  EXPECT_EQ(processes(bench), "2 a\n");
  bench.send(1, "_e{9,1}:run_start|b|#run:b");
  EXPECT_EQ(processes(bench), "2 a\n1 b\n");
}

// A notebook keeps its data loader's workers, which send no run_stop of their own.
TEST(RunProcesses, AreNotTheForksOfAProcessThatStopped) {
  JobsBench bench;
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.born(2, 0, {1});
  bench.send(2, "ml.phase.seconds:1|d|#run:a");
  EXPECT_EQ(processes(bench), "1 a\n2 a\n");
  bench.send(1, "_e{8,7}:run_stop|success|#run:a");
  EXPECT_EQ(processes(bench), "");
}

TEST(RunProcesses, EndedRunsAreNamed) {
  JobsBench bench;
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.send(2, "_e{9,1}:run_start|b|#run:b");
  bench.send(1, "_e{8,7}:run_stop|success|#run:a");
  bench.model.tick(bench.now);
  EXPECT_EQ(bench.model.runs().ended, (std::vector<RunName>{{"alice", "a"}}));
  bench.send(1, "_e{9,1}:run_start|a|#run:a");
  bench.model.tick(bench.now);
  EXPECT_EQ(bench.model.runs().ended, std::vector<RunName>());
}

}  // namespace

}  // namespace gpumeter::jobs
