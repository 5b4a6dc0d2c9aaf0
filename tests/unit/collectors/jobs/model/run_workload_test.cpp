#include <gtest/gtest.h>

#include "tests/unit/collectors/jobs/model/jobs_bench.hpp"

namespace gpumeter::jobs {
namespace {

using cgroup::Kind;

/// Runs of one name and user in several workloads. Times are seconds since the start of the test.
class RunWorkload : public testing::Test {
 protected:
  void start(int pid) { jobs_.send(pid, "_e{9,1}:run_start|a|#run:a\nml.step:10|g|#run:a"); }
  void stop(int pid, const std::string& status = "success") {
    jobs_.send(pid, "_e{8,7}:run_stop|" + status + "|#run:a");
    jobs_.kill(pid);
  }
  /// Returns "label: start, restarts, status" for each run.
  std::string runs() {
    std::string text, status;
    for (const PageLine& line : jobs_.lines()) {
      const std::string_view name = line.family;
      const auto number = std::to_string(static_cast<long>(line.value));
      if (name == "ml_run_start_timestamp_seconds") {
        text += line.run() + ": " + std::to_string(static_cast<long>(line.value) - 1'700'000'000);
        status.clear();
      }
      if (name == "ml_run_stop_timestamp_seconds") status = ' ' + line.labels.back().second;
      if (name == "ml_run_restarts_total") text += ", " + number + " restarts" + status + '\n';
    }
    return text;
  }
  JobsBench jobs_;
};

TEST_F(RunWorkload, TasksOfAnArrayAtTheSameTimeAreRunsOfTheirOwn) {
  for (const int task : {10, 20, 30}) {
    for (int rank = 0; rank < 2; ++rank) {  // ranks of one job, in Slurm steps of their own
      jobs_.in_workload(task + rank, Kind::slurm_job, std::to_string(100 + task / 10));
      start(task + rank);
    }
    jobs_.wait(5);
  }
  EXPECT_EQ(runs(), "a: 0, 0 restarts\na@102: 5, 0 restarts\na@103: 10, 0 restarts\n");
  EXPECT_EQ(jobs_.model.runs().processes.at(2).run, (RunName{"alice", "a@102"}));
  for (const int pid : {10, 11}) stop(pid);
  EXPECT_EQ(runs(), "a: 0, 0 restarts success\na@102: 5, 0 restarts\na@103: 10, 0 restarts\n");
  jobs_.wait(600);
  jobs_.send(20, "ml.step:11|g|#run:a");
  EXPECT_EQ(runs(), "a@102: 5, 0 restarts\na@103: 10, 0 restarts\n");  // labels stay
  jobs_.in_workload(40, Kind::slurm_job, "104");
  start(40);
  EXPECT_EQ(runs(), "a: 615, 0 restarts\na@102: 5, 0 restarts\na@103: 10, 0 restarts\n");
}

TEST_F(RunWorkload, TasksOfAnArrayOneAfterTheOtherAreRunsOfTheirOwn) {
  for (const int task : {1, 2}) {
    jobs_.in_workload(10 + task, Kind::slurm_job, std::to_string(100 + task));
    start(10 + task);
    jobs_.wait(5);
    stop(10 + task);
  }
  EXPECT_EQ(runs(), "a: 0, 0 restarts success\na@102: 5, 0 restarts success\n");
}

TEST_F(RunWorkload, ATaskThatFollowsOneThatFailedIsARunOfItsOwn) {
  for (const int task : {1, 2}) {
    jobs_.in_workload(10 + task, Kind::slurm_job, std::to_string(100 + task));
    start(10 + task);
    jobs_.wait(5);
    jobs_.kill(10 + task);
  }
  EXPECT_EQ(runs(), "a: 0, 0 restarts lost\na@102: 5, 0 restarts lost\n");
}

TEST_F(RunWorkload, AJobThatIsQueuedAgainIsARestart) {
  jobs_.in_workload(10, Kind::slurm_job, "100");
  start(10);
  jobs_.kill(10);
  EXPECT_EQ(runs(), "a: 0, 0 restarts lost\n");
  jobs_.wait(5);
  jobs_.in_workload(11, Kind::slurm_job, "100");
  start(11);
  EXPECT_EQ(runs(), "a: 0, 1 restarts\n");
}

TEST_F(RunWorkload, AContainerThatIsMadeAgainGoesOnWithTheRun) {
  jobs_.in_workload(10, Kind::container, "0123");
  start(10);
  stop(10, "aborted");
  jobs_.wait(5);
  jobs_.in_workload(11, Kind::container, "4567");
  start(11);  // before the next check for ended processes
  EXPECT_EQ(runs(), "a: 0, 1 restarts\n");
  jobs_.in_workload(12, Kind::container, "89ab");
  start(12);
  EXPECT_EQ(runs(), "a: 0, 1 restarts\na@89ab: 5, 0 restarts\n");  // the first run has a live process now
  jobs_.in_workload(13, Kind::container, "4567");
  start(13);
  EXPECT_EQ(runs(), "a: 0, 1 restarts\na@89ab: 5, 0 restarts\n");
}

TEST_F(RunWorkload, AUnitThatIsStartedAgainAfterItEndedWellBeginsAnew) {
  for (const int pid : {10, 11}) {
    jobs_.in_workload(pid, Kind::systemd_unit, "train.service");
    start(pid);
    stop(pid);
    jobs_.wait(5);
  }
  EXPECT_EQ(runs(), "a: 5, 0 restarts success\n");
}

TEST_F(RunWorkload, WhoseWorkloadIsNotKnownTakesPartInTheRunOfTheName) {
  start(10);
  jobs_.in_workload(11, Kind::pod, "p");
  start(11);
  start(0);
  EXPECT_EQ(runs(), "a: 0, 0 restarts\n");
  jobs_.in_workload(12, Kind::pod, "q");
  start(12);
  EXPECT_EQ(runs(), "a: 0, 0 restarts\na@q: 0, 0 restarts\n");
}

TEST_F(RunWorkload, AProcessIsOfTheWorkloadThatItWasInAtFirst) {
  jobs_.in_workload(10, Kind::pod, "p");
  start(10);
  jobs_.in_workload(10, Kind::pod, "q");
  start(10);
  jobs_.send(10, "ml.step:11|g|#run:b");
  jobs_.in_workload(11, Kind::pod, "p");
  jobs_.send(11, "ml.step:11|g|#run:b");
  EXPECT_EQ(runs(), "a: 0, 0 restarts\nb: 0, 0 restarts\n");
}

TEST_F(RunWorkload, LabelsAreNeverTheSame) {
  jobs_.in_workload(10, Kind::pod, "p");
  jobs_.in_workload(11, Kind::pod, "q");
  jobs_.in_workload(12, Kind::vm, "q");
  jobs_.send(10, "ml.step:1|g|#run:a@q");
  for (const int pid : {10, 11, 12}) start(pid);
  EXPECT_EQ(runs(), "a: 0, 0 restarts\na@q: 0, 0 restarts\na@q#2: 0, 0 restarts\na@q#3: 0, 0 restarts\n");
  const std::string id(64, 'c');
  jobs_.in_workload(13, Kind::container, id);
  start(13);
  EXPECT_NE(runs().find("a@" + id.substr(0, 53) + "~"), std::string::npos) << runs();
}

TEST_F(RunWorkload, WhoNamesNoRunIsOfOneWithTheWorkloadsName) {
  jobs_.in_workload(10, Kind::slurm_job, "4711");
  jobs_.in_workload(11, Kind::slurm_job, "4711");
  jobs_.in_workload(12, Kind::systemd_unit, "infer.service");
  for (const int pid : {10, 11, 12, 13}) jobs_.send(pid, "ml.steps:1|c");
  EXPECT_EQ(jobs_.page({"ml_steps_total"}),
            "ml_steps_total{run=\"4711\",user=\"alice\",split=\"train\"} 2\n"
            "ml_steps_total{run=\"infer.service\",user=\"alice\",split=\"train\"} 1\n"
            "ml_steps_total{run=\"unnamed\",user=\"alice\",split=\"train\"} 1\n");
}

TEST_F(RunWorkload, NamesThatDifferAfter64BytesStayApart) {
  const std::string common(70, 'x');
  jobs_.send(10, "ml.steps:1|c|#run:" + common + "1\nml.steps:2|c|#run:" + common + "2");
  EXPECT_EQ(jobs_.model.usage().runs, 2U);
}

}  // namespace
}  // namespace gpumeter::jobs
