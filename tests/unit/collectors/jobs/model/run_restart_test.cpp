#include <gtest/gtest.h>

#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

/// Sends one step of one rank, as the client does.
void step(JobsBench& jobs, int pid, int number) {
  jobs.send(pid, "ml.steps:1|c|#run:a\nml.step:" + std::to_string(number) + "|g|#run:a\n");
}
void steps(JobsBench& jobs, int pid, int first, int last) {
  for (int number = first; number <= last; ++number) step(jobs, pid, number);
  jobs.wait(1);
}

/// "steps total, step, restarts, lost"
std::string progress(JobsBench& jobs) {
  double total = 0, at = -1, restarts = -1, lost = -1;
  for (const PageLine& line : jobs.lines()) {
    const std::string_view name = line.family;
    if (name == "ml_steps_total") total += line.value;
    if (name == "ml_step") at = line.value;
    if (name == "ml_run_restarts_total") restarts = line.value;
    if (name == "ml_lost_steps_total") lost = line.value;
  }
  char text[100];
  std::snprintf(text, sizeof text, "%g steps, at %g, %g restarts, %g lost", total, at, restarts, lost);
  return text;
}

TEST(RunRestart, EightSkewedRanksAreOneGeneration) {
  JobsBench jobs;
  for (int number = 1; number <= 50; ++number) {
    for (int rank = 0; rank < 8; ++rank) {
      if (number > rank) step(jobs, 10 + rank, number - rank);  // each rank is a step behind the previous one
    }
    jobs.wait(0.5);
  }
  EXPECT_EQ(progress(jobs), "372 steps, at 50, 0 restarts, 0 lost");
  jobs.kill(10);  // the first rank ends first, and the others continue
  EXPECT_EQ(progress(jobs), "372 steps, at 49, 0 restarts, 0 lost");
  for (int rank = 1; rank < 8; ++rank) steps(jobs, 10 + rank, 51 - rank, 50);
  for (int rank = 1; rank < 8; ++rank) jobs.kill(10 + rank);
  EXPECT_EQ(progress(jobs), "400 steps, at 50, 0 restarts, 0 lost");
}

TEST(RunRestart, ARankThatComesLateOrGoesBackIsNoRestart) {
  JobsBench jobs;
  steps(jobs, 10, 1, 20);
  steps(jobs, 11, 1, 5);
  step(jobs, 10, 3);
  EXPECT_EQ(progress(jobs), "26 steps, at 5, 0 restarts, 0 lost");
}

TEST(RunRestart, FromACheckpointLosesTheStepsAfterIt) {
  JobsBench jobs;
  for (int rank = 0; rank < 8; ++rank) steps(jobs, 10 + rank, 1, 150 - rank);
  for (int rank = 0; rank < 8; ++rank) jobs.kill(10 + rank);
  jobs.wait(20);
  for (int rank = 0; rank < 8; ++rank) step(jobs, 20 + rank, 101);  // from the checkpoint after step 100
  EXPECT_EQ(progress(jobs), "1180 steps, at 101, 1 restarts, 50 lost");
  for (int rank = 0; rank < 8; ++rank) steps(jobs, 20 + rank, 102, 160);
  EXPECT_EQ(progress(jobs), "1652 steps, at 160, 1 restarts, 50 lost");
}

TEST(RunRestart, WithoutACheckpointLosesAll) {
  JobsBench jobs;
  steps(jobs, 10, 1, 70);
  jobs.kill(10);
  steps(jobs, 11, 1, 3);
  EXPECT_EQ(progress(jobs), "73 steps, at 3, 1 restarts, 70 lost");
  jobs.kill(11);
  steps(jobs, 12, 4, 5);  // from a checkpoint just before
  EXPECT_EQ(progress(jobs), "75 steps, at 5, 2 restarts, 70 lost");
}

TEST(RunRestart, TheStartIsFoundWhicheverWayTheClientTellsIt) {
  for (const char* const first :
       {"ml.step:100|g", "ml.step:101|g\nml.steps:1|c",
        "ml.steps:1|c\nml.step:101|g\nml.steps:1|c\nml.step:102|g", "ml.steps:5|c\nml.step:105|g"}) {
    JobsBench jobs;
    jobs.send(10, "_e{9,1}:run_start|a\nml.step:150|g");
    jobs.kill(10);
    jobs.send(11, std::string("_e{9,1}:run_start|a\n") + first);
    jobs.send(11, "ml.steps:1|c\nml.step:107|g");
    EXPECT_EQ(jobs.page({"ml_lost_steps_total"}), "ml_lost_steps_total{run=\"a\",user=\"alice\"} 50\n")
        << first;
  }
}

TEST(RunRestart, ALauncherThatOnlyAnnouncesTheRunIsNoGeneration) {
  JobsBench jobs;
  jobs.send(10, "_e{9,1}:run_start|a");
  jobs.kill(10);
  steps(jobs, 11, 1, 2);
  EXPECT_EQ(progress(jobs), "2 steps, at 2, 0 restarts, 0 lost");
}

TEST(RunRestart, AnAbortedRunGoesOnAndKeepsItsStart) {
  JobsBench jobs;
  jobs.send(10, "_e{9,1}:run_start|a\nml.step:8|g\n_e{8,7}:run_stop|aborted");
  jobs.kill(10);
  jobs.wait(60);
  jobs.send(11, "_e{9,1}:run_start|a\nml.step:5|g\nml.target:1|g|#metric:m\nml.eval:1|g|#metric:m");
  EXPECT_EQ(jobs.page(), R"(ml_run_start_timestamp_seconds{run="a",user="alice"} 1700000000
ml_run_time_seconds{run="a",user="alice"} 60
ml_last_update_timestamp_seconds{run="a",user="alice"} 1700000060
ml_run_restarts_total{run="a",user="alice"} 1
ml_lost_steps_total{run="a",user="alice"} 3
ml_step{run="a",user="alice"} 5
ml_eval_value{run="a",user="alice",metric="m"} 1
ml_eval_best_value{run="a",user="alice",metric="m"} 1
ml_target_value{run="a",user="alice",metric="m"} 1
ml_time_to_solution_seconds{run="a",user="alice",metric="m"} 60
)");
}

TEST(RunRestart, ARunThatEndedWellBeginsAnewWithoutALoss) {
  JobsBench jobs;
  jobs.send(
      10,
      "_e{9,1}:run_start|a\nml.steps:8|c\nml.step:8|g\nml.eval:0.5|g|#metric:m\n_e{8,7}:run_stop|success");
  jobs.kill(10);
  jobs.wait(60);
  jobs.send(11, "_e{9,1}:run_start|a\nml.steps:1|c\nml.step:1|g");
  EXPECT_EQ(jobs.page(), R"(ml_run_start_timestamp_seconds{run="a",user="alice"} 1700000060
ml_run_time_seconds{run="a",user="alice"} 0
ml_last_update_timestamp_seconds{run="a",user="alice"} 1700000060
ml_run_restarts_total{run="a",user="alice"} 0
ml_lost_steps_total{run="a",user="alice"} 0
ml_step{run="a",user="alice"} 1
ml_steps_total{run="a",user="alice",split="train"} 9
)");
}

TEST(RunRestart, SoDoesOneOfTheSameProcess) {
  JobsBench jobs;
  jobs.send(10,
            "_e{9,1}:run_start|a\nml.steps:8|c\nml.step:8|g\n_e{8,7}:run_stop|success\n_e{9,1}:run_start|a");
  EXPECT_EQ(progress(jobs), "8 steps, at -1, 0 restarts, 0 lost");
  jobs.send(10, "ml.steps:1|c\nml.step:1|g");
  jobs.kill(10);
  steps(jobs, 11, 1, 1);
  EXPECT_EQ(progress(jobs), "10 steps, at 1, 1 restarts, 1 lost");
}

TEST(RunRestart, RanksThatStartLateOrStopLateAreOfTheSameRun) {
  JobsBench jobs;
  jobs.send(10, "_e{9,1}:run_start|a\nml.steps:1|c");
  jobs.send(11, "_e{9,1}:run_start|a\nml.steps:1|c");
  jobs.wait(10);
  jobs.send(10, "_e{8,7}:run_stop|success");
  jobs.send(12, "_e{9,1}:run_start|a\nml.steps:1|c");
  jobs.wait(10);
  jobs.send(11, "_e{8,7}:run_stop|aborted");
  jobs.send(12, "_e{8,7}:run_stop|success");
  EXPECT_EQ(jobs.page({"ml_run_start_timestamp_seconds", "ml_run_stop_timestamp_seconds"}),
            "ml_run_start_timestamp_seconds{run=\"a\",user=\"alice\"} 1700000000\n"
            "ml_run_stop_timestamp_seconds{run=\"a\",user=\"alice\",status=\"aborted\"} 1700000020\n");
}

TEST(RunRestart, ARestartThatAllRanksAnnounceIsOne) {
  JobsBench jobs;
  for (const int pid : {10, 11, 12}) jobs.send(pid, "ml.steps:1|c|#run:a\n_e{7,0}:restart||#run:a");
  EXPECT_EQ(progress(jobs), "3 steps, at -1, 1 restarts, 0 lost");
  jobs.send(11, "_e{7,0}:restart||#run:a");
  EXPECT_EQ(progress(jobs), "3 steps, at -1, 2 restarts, 0 lost");
  for (const int pid : {10, 11, 12}) jobs.kill(pid);
  for (const int pid : {20, 21}) jobs.send(pid, "_e{7,0}:restart||#run:a\nml.steps:1|c|#run:a");
  EXPECT_EQ(progress(jobs), "5 steps, at -1, 3 restarts, 0 lost");
}

}  // namespace
}  // namespace gpumeter::jobs
