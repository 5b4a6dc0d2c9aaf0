#include <gtest/gtest.h>

#include "collectors/jobs/model/cells.hpp"
#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

/// A run with every kind of value, in the middle of its life.
void train(JobsBench& jobs) {
  jobs.in_workload(10, cgroup::Kind::slurm_job, "4711");
  jobs.send(10,
            "_e{9,6}:run_start|resnet|t:info|#framework:torch,version:2.7,model:a\tb,"
            "precision:bf16,data_parallel:8");
  jobs.wait(100);
  jobs.send(10,
            "ml.steps:1|c\nml.step:7|g\nml.samples:256|c\nml.loss:2.5|g\nml.phase.seconds:0.5:0.25|d|#phase:"
            "data_loading\nml.step.seconds:0.2|d\nml.custom:3|g|#metric:norm\n");
  jobs.send(10, "ml.target:0.759|g|#metric:top1,direction:max\nml.eval:0.76|g|#metric:top1\n");
  jobs.send(10, "ml.memory:100|g|#state:allocated\nml.memory:300|g|#state:peak\nml.oom:2|c");
  jobs.wait(5);
  jobs.send(11, "ml.infer.seconds:0.003|d|#run:serve");
  jobs.tick();
}

TEST(SavedRuns, ARestartChangesNothing) {
  JobsBench before;
  train(before);
  JobsBench after;
  after.now = before.now;
  ASSERT_TRUE(after.model.restore(before.model.save(before.now), after.now, true));
  EXPECT_EQ(after.page(), std::string(before.page()));
  EXPECT_EQ(after.model.usage().series, before.model.usage().series);
  EXPECT_EQ(after.model.usage().members, before.model.usage().members);
  for (JobsBench* const jobs : {&before, &after}) {  // the same process goes on, and solves nothing twice
    jobs->in_workload(10, cgroup::Kind::slurm_job, "4711");
    jobs->wait(10);
    jobs->send(10, "ml.steps:1|c\nml.step:8|g\nml.eval:0.8|g|#metric:top1\n_e{8,7}:run_stop|success");
    jobs->wait(1);
  }
  EXPECT_EQ(after.page(), std::string(before.page()));
  EXPECT_NE(
      after.page().find("ml_time_to_solution_seconds{run=\"resnet\",user=\"alice\",metric=\"top1\"} 100"),
      std::string::npos);
}

// A directory of users may answer seconds after the first message.
TEST(SavedRuns, AUserWhoseNameIsKnownLaterHasNoNumberAnyMore) {
  JobsBench later;
  JobsBench at_once;
  for (JobsBench* const jobs : {&later, &at_once}) {
    const auto send = [&](const char* lines, const char* name) {
      jobs->send_as(1000, 10, lines, 1000, name);
    };
    const char* const first = jobs == &later ? "1000" : "alice";
    jobs->in_workload(10, cgroup::Kind::slurm_job, "4711");
    send("_e{9,6}:run_start|resnet|#framework:torch\nml.steps:2|c\nml.step.seconds:0.2|d\nml.eval:3|g",
         first);
    jobs->send(11, "ml.steps:7|c", 1001);
    jobs->tick();
    jobs->wait(3);
    send("ml.steps:1|c\nml.custom:3|g|#metric:norm", "alice");
    jobs->wait(1);
    send("ml.steps:1|c", first);  // such as a connection from before
  }
  EXPECT_EQ(later.page(), std::string(at_once.page()));
  EXPECT_NE(later.page().find("ml_steps_total{run=\"resnet\",user=\"alice\",split=\"train\"} 4"),
            std::string::npos)
      << later.page();
  EXPECT_EQ(later.model.usage().series, at_once.model.usage().series);
  EXPECT_EQ(later.model.usage().processes, at_once.model.usage().processes);
  EXPECT_EQ(later.model.runs().runs.size(), 2U);
}

TEST(SavedRuns, AFactOutsideItsSetIsRejected) {
  JobsBench before;
  train(before);
  std::string saved = before.model.save(before.now);
  saved.replace(saved.find("bf16"), 4, "bf17");
  JobsBench after;
  EXPECT_FALSE(after.model.restore(saved, after.now, true));
}

TEST(SavedRuns, AProcessThatEndedMeanwhileIsLost) {
  JobsBench before;
  train(before);
  JobsBench after;
  after.now = before.now;
  ASSERT_TRUE(after.model.restore(before.model.save(before.now), after.now, true));
  EXPECT_NE(after.page().find("state=\"peak\"} 300"), std::string::npos);
  after.kill(10);
  EXPECT_NE(after.page().find("status=\"lost\""), std::string::npos);
  EXPECT_EQ(after.page().find("state="), std::string::npos) << "memory of a process that ended";
}

TEST(SavedRuns, TimesOfAnEarlierBootAreMoved) {
  JobsBench before;
  train(before);
  JobsBench after;
  after.now = {before.now.elapsed - std::chrono::seconds(90), before.now.unix + std::chrono::seconds(30)};
  ASSERT_TRUE(after.model.restore(before.model.save(before.now), after.now, false));
  after.wait(0);
  EXPECT_NE(after.page().find("ml_run_time_seconds{run=\"resnet\",user=\"alice\"} 135"), std::string::npos)
      << after.page();
  EXPECT_NE(
      after.page().find("ml_time_to_solution_seconds{run=\"resnet\",user=\"alice\",metric=\"top1\"} 100"),
      std::string::npos);
}

// The calendar clock was ten years ahead and was then set right.
TEST(SavedRuns, AClockThatIsSetLosesNoRunOfTheBoot) {
  JobsBench before;
  before.send(10, "ml.steps:3|c|#run:a\n");
  before.now.unix += std::chrono::hours(24 * 366 * 11);
  JobsBench after;
  ASSERT_TRUE(after.model.restore(before.model.save(before.now), after.now, true));
  EXPECT_EQ(after.model.usage().runs, 1U);
}

TEST(SavedRuns, EveryCutLineIsRejectedOrAShorterState) {
  JobsBench before;
  train(before);
  const std::string saved = before.model.save(before.now);
  for (std::size_t length = 0; length < saved.size(); length += 61) {
    JobsBench after;
    const Result<Done> restored = after.model.restore(saved.substr(0, length), after.now, true);
    EXPECT_TRUE(restored || after.model.usage().runs == 0) << length;
    after.tick();
  }
}

TEST(SavedRuns, WhatIsNoRunIsRejected) {
  const std::string head = "clock\t0\t0\n";
  for (const char* text :
       {"cell\tml.loss\t0\t255\t1\t0\n", "user\t1\ta\t0\nother\n", "user\t1\ta\t0\nuser\t1\ta\t0\n",
        "user\t1\ta\t0\nevaluation\tx\n", "user\t1\ta\t0\ncell\tnone\t0\t0\t1\t1\n",
        "user\t1\ta\t0\ncell\tml.loss\t200\t0\t1\t1\n", "user\t1\ta\t0\ncell\tml.loss\t0\t255\tnan\t1\n",
        "user\t1\ta\t0\nmember\t1\t1\t1\n"}) {
    JobsBench jobs;
    EXPECT_FALSE(jobs.model.restore(head + text, jobs.now, true)) << text;
    EXPECT_EQ(jobs.model.usage().users, 0U);
  }
  JobsBench jobs;
  EXPECT_FALSE(jobs.model.restore("user\t1\ta\t0\n", jobs.now, true));
  EXPECT_TRUE(jobs.model.restore("", jobs.now, true));
}

}  // namespace
}  // namespace gpumeter::jobs
