#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "collectors/jobs/join/run_join.hpp"
#include "tests/fakes/join_machine.hpp"

namespace gpumeter::jobs {
namespace {

// A server reports while its engine computes, in the same container, started by the same shell.
TEST(RunOwner, GuessesTheRunByTheCgroup) {
  JoinMachine machine;
  machine.process(10, 1, "/system.slice/serve.service");
  machine.process(20, 1, "/system.slice/serve.service");
  machine.tells(10, kAlice, "alice", "serve");
  machine.device("A").processes = {machine.in_group(20)};
  machine.second();
  EXPECT_NE(machine.text().find(
                "ml_run_gpu_info{run=\"serve\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"workload\"}"),
            std::string::npos);
}

// A model server beside a training in one container: its energy is not the training's.
TEST(RunOwner, GivesNothingOfAProgramBesideTheRunsOwn) {
  const std::string container = "/docker/" + std::string(64, 'a');
  JoinMachine machine;
  for (const int pid : {10, 20}) machine.process(pid, 1, container);
  machine.process(11, 10, container);  // the training's child
  machine.tells(10, kAlice, "alice", "train");
  DeviceUse& gpu = machine.device("A");
  const auto use = [&](double joules) {
    gpu.processes.clear();
    for (const int pid : {10, 11, 20}) {
      gpu.processes.push_back(machine.in_group(pid));
      gpu.processes.back().energy_joules = joules;
    }
  };
  use(0);
  machine.second();
  use(100);
  machine.second();
  EXPECT_NE(machine.text().find("ml_energy_joules_total{run=\"train\",user=\"alice\"} 200.00\n"),
            std::string::npos)
      << machine.text();
}

// Nor of another program in a login session, even if it has a GPU of its own.
TEST(RunOwner, GivesNothingOfAnotherProgramInALoginSession) {
  const std::string session = "/user.slice/user-1000.slice/session-3.scope";
  JoinMachine machine;
  for (const int pid : {10, 20}) machine.process(pid, 1, session);
  machine.tells(10, kAlice, "alice", "train");
  machine.device("A").processes = {machine.in_group(20)};
  machine.second();
  EXPECT_EQ(machine.text(), "");
}

TEST(RunOwner, TrustsNoCgroupOfAnotherUserNorTheRoots) {
  JoinMachine machine;
  machine.process(10, 1, "/system.slice/serve.service");
  machine.process(20, 1, "/system.slice/serve.service");
  machine.process(11, 1, "/");
  machine.process(21, 1, "/");
  machine.tells(10, kAlice, "alice", "serve");
  machine.tells(11, kAlice, "alice", "root");
  machine.device("A").processes = {machine.in_group(20, kBob), machine.in_group(21)};
  machine.second();
  EXPECT_EQ(machine.text(), "");
}

// Two trainings run in one login session; only the ancestry distinguishes them.
TEST(RunOwner, FindsTheRunByKinshipWhereTheCgroupHasTwo) {
  const std::string session = "/user.slice/user-1000.slice/session-3.scope";
  JoinMachine machine;
  machine.process(10, 1, session);
  machine.process(11, 1, session);
  machine.process(20, 19, session);
  machine.process(19, 10, session);
  machine.process(21, 1, session);
  machine.process(11, 21, session);
  machine.process(22, 1, session);
  machine.tells(10, kAlice, "alice", "launcher");
  machine.tells(11, kAlice, "alice", "loader");
  machine.device("A").processes = {machine.in_group(20)};
  machine.device("B").processes = {machine.in_group(21)};
  machine.device("C").processes = {machine.in_group(22)};
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"launcher\",user=\"alice\"} 0.0000\n"
      "ml_run_gpu_info{run=\"launcher\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
      "ml_energy_joules_total{run=\"loader\",user=\"alice\"} 0.0000\n"
      "ml_run_gpu_info{run=\"loader\",user=\"alice\",gpu=\"0\",uuid=\"B\",source=\"process\"} 1.0000\n");
}

TEST(RunOwner, IsNotFooledByAPidThatIsUsedAnew) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {JoinMachine::use(10, 50, 0)};
  gpu.processes[0].id.start_ticks = 6;
  machine.second();
  EXPECT_EQ(machine.text(), "");
}

TEST(RunOwner, CountsTheLastFiguresOfAProcessThatHasEnded) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {JoinMachine::use(10, 50, 0)};
  machine.second();
  machine.jobs.processes.clear();
  gpu.processes[0].energy_joules = 80;
  gpu.processes[0].present = false;
  machine.second();
  EXPECT_EQ(machine.text(), "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 80.000\n");
  machine.jobs.runs.clear();  // ten minutes later
  machine.second();
  EXPECT_EQ(machine.text(), "");
}

TEST(RunOwner, SplitsAProcessThatTellsOfTwoRuns) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "a");
  machine.tells(10, kAlice, "alice", "b");
  machine.device("A").processes = {JoinMachine::use(10, 50, 0)};
  machine.second();
  EXPECT_EQ(machine.text(),
            "ml_energy_joules_total{run=\"a\",user=\"alice\"} 25.000\n"
            "ml_run_gpu_info{run=\"a\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
            "ml_energy_joules_total{run=\"b\",user=\"alice\"} 25.000\n"
            "ml_run_gpu_info{run=\"b\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

// Slurm gives each task a cgroup of its own. Only rank 0 reports, as with most clients.
class JobOfFour : public JoinMachine {
 public:
  static constexpr const char* kJob = "/system.slice/node1_slurmstepd.scope/job_7";

  JobOfFour() {
    devices.reserve(4);
    for (unsigned rank = 0; rank < 4; ++rank) {
      start(10 + static_cast<int>(rank), "/step_0/user/task_" + std::to_string(rank));
      device(std::string(1, static_cast<char>('A' + rank)), rank);
    }
    use(0);
  }
  void start(int pid, const std::string& below) { process(pid, 1, kJob + below); }
  /// Each rank used that many joules so far, and half of the time.
  void use(double joules, double busy = 0) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      ProcessUse used = in_group(10 + static_cast<int>(rank));
      used.energy_joules = joules;
      used.busy_seconds = busy;
      devices[rank].processes = {used};
    }
  }
};

TEST(RunOwner, GuessesThatARunHasTheGpusOfItsJobThatNoOtherClaims) {
  JobOfFour job;
  job.tells(10, kAlice, "alice", "bert");
  job.second();
  job.use(100, 0.5);
  job.second();
  EXPECT_EQ(job.text(),
            "ml_energy_joules_total{run=\"bert\",user=\"alice\"} 400.00\n"
            "ml_gpu_idle_allocated_seconds_total{run=\"bert\",user=\"alice\"} 2.0000\n"
            "ml_run_gpu_info{run=\"bert\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
            "ml_run_gpu_info{run=\"bert\",user=\"alice\",gpu=\"1\",uuid=\"B\",source=\"workload\"} 1.0000\n"
            "ml_run_gpu_info{run=\"bert\",user=\"alice\",gpu=\"2\",uuid=\"C\",source=\"workload\"} 1.0000\n"
            "ml_run_gpu_info{run=\"bert\",user=\"alice\",gpu=\"3\",uuid=\"D\",source=\"workload\"} 1.0000\n");
}

TEST(RunOwner, GuessesNothingWhereTwoRunsOfTheWorkloadTell) {
  JobOfFour job;
  job.tells(10, kAlice, "alice", "bert");
  job.second();
  job.use(100);
  job.second();
  job.tells(11, kAlice, "alice", "gpt");
  job.use(110);
  job.second();
  job.use(150);
  job.second();
  EXPECT_EQ(job.text(),
            "ml_energy_joules_total{run=\"bert\",user=\"alice\"} 450.00\n"
            "ml_gpu_idle_allocated_seconds_total{run=\"bert\",user=\"alice\"} 6.0000\n"
            "ml_run_gpu_info{run=\"bert\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
            "ml_energy_joules_total{run=\"gpt\",user=\"alice\"} 50.000\n"
            "ml_gpu_idle_allocated_seconds_total{run=\"gpt\",user=\"alice\"} 2.0000\n"
            "ml_run_gpu_info{run=\"gpt\",user=\"alice\",gpu=\"1\",uuid=\"B\",source=\"process\"} 1.0000\n");
}

TEST(RunOwner, GuessesNothingOfAnotherUserOrAnotherJob) {
  JobOfFour job;
  job.tells(10, kAlice, "alice", "bert");
  job.process(11, 1, "/system.slice/node1_slurmstepd.scope/job_8/step_0/user/task_1");
  job.devices[1].processes = {job.in_group(11)};
  job.devices[2].processes = {job.in_group(12, kBob)};
  job.devices[3].processes.clear();
  job.second();
  EXPECT_EQ(job.text(),
            "ml_energy_joules_total{run=\"bert\",user=\"alice\"} 0.0000\n"
            "ml_run_gpu_info{run=\"bert\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunOwner, MarksAGpuThatAlsoHasAProcessOfItsOwnAsNoGuess) {
  JobOfFour job;
  job.tells(10, kAlice, "alice", "bert");
  job.devices.resize(1);
  for (const int pid : {11, 10, 12}) job.devices[0].processes.push_back(job.in_group(pid));
  job.second();
  EXPECT_EQ(job.text(),
            "ml_energy_joules_total{run=\"bert\",user=\"alice\"} 0.0000\n"
            "ml_run_gpu_info{run=\"bert\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

// Rank 0 continues with its next run, as a notebook or a sweep does. Between the two it reports no run.
TEST(RunOwner, GivesTheGpusToTheNextRunOfTheSameProcess) {
  JobOfFour job;
  job.tells(10, kAlice, "alice", "first");
  job.second();
  job.jobs.processes.clear();
  job.use(100);
  job.second();
  job.tells(10, kAlice, "alice", "second");
  job.use(110);
  job.second();
  EXPECT_EQ(
      job.text(),
      "ml_energy_joules_total{run=\"first\",user=\"alice\"} 400.00\n"
      "ml_gpu_idle_allocated_seconds_total{run=\"first\",user=\"alice\"} 4.0000\n"
      "ml_energy_joules_total{run=\"second\",user=\"alice\"} 40.000\n"
      "ml_gpu_idle_allocated_seconds_total{run=\"second\",user=\"alice\"} 4.0000\n"
      "ml_run_gpu_info{run=\"second\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
      "ml_run_gpu_info{run=\"second\",user=\"alice\",gpu=\"1\",uuid=\"B\",source=\"workload\"} 1.0000\n"
      "ml_run_gpu_info{run=\"second\",user=\"alice\",gpu=\"2\",uuid=\"C\",source=\"workload\"} 1.0000\n"
      "ml_run_gpu_info{run=\"second\",user=\"alice\",gpu=\"3\",uuid=\"D\",source=\"workload\"} 1.0000\n");
}

// A notebook keeps its GPU after its run has ended. The second in which the run ended still counts for the
// run.
TEST(RunOwner, GivesARunNothingOfWhatIsUsedAfterItsEnd) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "bert");
  machine.devices.reserve(2);
  for (const char* const gpu : {"A", "B"}) machine.device(gpu).processes = {JoinMachine::use(10, 100, 0)};
  machine.second();
  machine.jobs.processes.clear();
  machine.jobs.ended = machine.jobs.runs;
  for (const double joules : {120, 500, 1000}) {
    for (DeviceUse& gpu : machine.devices) gpu.processes = {JoinMachine::use(10, joules, 0)};
    machine.second();
  }
  EXPECT_EQ(machine.text(),
            "ml_energy_joules_total{run=\"bert\",user=\"alice\"} 240.00\n"
            "ml_gpu_idle_allocated_seconds_total{run=\"bert\",user=\"alice\"} 2.0000\n");
}

// Rank 0 has reported the end and exited; the other ranks still hold their GPUs.
TEST(RunOwner, LeavesTheRanksWithTheirRunWhenRank0HasEnded) {
  JobOfFour job;
  job.tells(10, kAlice, "alice", "bert");
  job.second();
  job.jobs.processes.clear();
  job.use(100);
  job.devices[0].processes.clear();
  job.second();
  EXPECT_NE(job.text().find("ml_energy_joules_total{run=\"bert\",user=\"alice\"} 300.00"), std::string::npos)
      << job.text();
}

}  // namespace
}  // namespace gpumeter::jobs
