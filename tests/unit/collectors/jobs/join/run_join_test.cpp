#include "collectors/jobs/join/run_join.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/fakes/join_machine.hpp"

namespace gpumeter::jobs {
namespace {

TEST(RunJoin, PublishesTheRunsOfProcesses) {
  JoinMachine machine;
  machine.process(10, 1, "/system.slice/train.service");
  machine.process(11, 10, "/system.slice/train.service");
  machine.process(12, 1, "/system.slice/other.service");
  machine.process(13, 1, "/system.slice/train.service");
  machine.tells(10, kAlice, "alice", "resnet");
  machine.device("A").processes = {machine.in_group(10), machine.in_group(11), machine.in_group(12),
                                   machine.in_group(13)};
  machine.second();
  EXPECT_EQ(machine.run_of(11), "alice/resnet");
  EXPECT_EQ(machine.run_of(13), "none") << "it is beside the run, in the same group";
  machine.second();
  EXPECT_EQ(machine.run_of(12), "none");
  machine.devices[0].processes[0].present = false;
  machine.second();
  EXPECT_EQ(machine.run_of(10), "none");
}

TEST(RunJoin, GivesARunTheEnergyAndTheIdleTimeOfItsProcess) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A", 3);
  gpu.processes = {JoinMachine::use(10, 100, 0.5)};
  machine.second();
  gpu.processes = {JoinMachine::use(10, 250, 0.75)};
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 250.00\n"
      "ml_gpu_idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"3\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, SumsTwoProcessesOfARunOnAGpu) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.tells(11, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {JoinMachine::use(10, 0, 0), JoinMachine::use(11, 0, 0)};
  machine.second();
  gpu.processes = {JoinMachine::use(10, 30, 0.25), JoinMachine::use(11, 60, 0.5)};
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 90.000\n"
      "ml_gpu_idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.2500\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, KeepsTwoRunsOnAGpuApart) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.tells(11, kBob, "bob", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {JoinMachine::use(10, 0, 0), JoinMachine::use(11, 0, 0, kBob)};
  machine.second();
  gpu.processes = {JoinMachine::use(10, 30, 0.25), JoinMachine::use(11, 60, 1, kBob)};
  machine.second();
  EXPECT_EQ(machine.text(),
            "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 30.000\n"
            "ml_gpu_idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500\n"
            "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
            "ml_energy_joules_total{run=\"resnet\",user=\"bob\"} 60.000\n"
            "ml_gpu_idle_allocated_seconds_total{run=\"resnet\",user=\"bob\"} 0.0000\n"
            "ml_run_gpu_info{run=\"resnet\",user=\"bob\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, SumsTheGpusOfARun) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.devices.reserve(2);
  DeviceUse& one = machine.device("B", 0);
  DeviceUse& other = machine.device("A", 1);
  one.processes = other.processes = {JoinMachine::use(10, 7, 0)};
  machine.second();
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 14.000\n"
      "ml_gpu_idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 2.0000\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"1\",uuid=\"A\",source=\"process\"} 1.0000\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"B\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, CountsIdleTimeFromListToList) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {JoinMachine::use(10, 0, 0)};
  machine.second();
  for (int i = 0; i < 9; ++i) machine.second(false);
  gpu.processes = {JoinMachine::use(10, 0, 8)};  // of ten seconds
  machine.second();
  machine.second(false);
  EXPECT_NE(machine.text().find("idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 2.0000"),
            std::string::npos)
      << machine.text();
}

TEST(RunJoin, CountsNoEnergyTwiceAndNoIdleTimeWhereADeviceWasAway) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.device("A").processes = {JoinMachine::use(10, 100, 0)};
  machine.second();
  const std::vector<DeviceUse> away = std::exchange(machine.devices, {});
  machine.second();
  machine.second();
  machine.devices = away;
  machine.devices[0].processes = {JoinMachine::use(10, 130, 0)};
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 130.00\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, TakesTheDevicesBusyTimeWhereTheProcessesIsNotKnownAndItIsAlone) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {JoinMachine::use(10, 0, std::nullopt)};
  gpu.busy_seconds = 100;
  machine.second();
  gpu.busy_seconds = 100.25;
  machine.second();
  EXPECT_NE(machine.text().find("idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500"),
            std::string::npos)
      << machine.text();
  gpu.processes.push_back(JoinMachine::use(77, 0, std::nullopt, kBob));
  machine.second();
  EXPECT_NE(machine.text().find("idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500"),
            std::string::npos)
      << machine.text();
}

TEST(RunJoin, SumsTheTimeThatARunsGpusLoseByThrottling) {
  JoinMachine machine;
  machine.devices.reserve(2);
  machine.tells(10, kAlice, "alice", "resnet");
  for (const char* const uuid : {"A", "B"}) {
    DeviceUse& gpu = machine.device(uuid);
    gpu.has_energy = false;
    gpu.processes = {JoinMachine::use(10, 0, std::nullopt)};
    gpu.throttled = {{"power", 100}, {"thermal", 7}};
    gpu.clock_lost_seconds = 40;
  }
  machine.second();
  const std::string gpus =
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"B\",source=\"process\"} 1.0000\n";
  EXPECT_EQ(machine.text(),
            "ml_clock_lost_seconds_total{run=\"resnet\",user=\"alice\"} 0.0000\n" + gpus +
                "ml_throttled_seconds_total{run=\"resnet\",user=\"alice\",cause=\"power\"} 0.0000\n"
                "ml_throttled_seconds_total{run=\"resnet\",user=\"alice\",cause=\"thermal\"} 0.0000\n");
  machine.devices[0].throttled = {{"power", 101}, {"thermal", 7.5}};
  machine.devices[0].clock_lost_seconds = 40.25;
  machine.devices[1].throttled = {{"power", 100.5}, {"thermal", 7}};
  machine.devices[1].clock_lost_seconds = 40.5;
  machine.second(false);
  const std::string lost =
      "ml_clock_lost_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500\n" + gpus +
      "ml_throttled_seconds_total{run=\"resnet\",user=\"alice\",cause=\"power\"} 1.5000\n"
      "ml_throttled_seconds_total{run=\"resnet\",user=\"alice\",cause=\"thermal\"} 0.5000\n";
  EXPECT_EQ(machine.text(), lost);
  machine.devices[1].throttled = {{"power", 900}};  // counted while it was away
  machine.devices[1].clock_lost_seconds = 900;
  const DeviceUse away = machine.devices[1];
  machine.devices.pop_back();
  machine.second();
  machine.devices.push_back(away);
  machine.second();
  EXPECT_EQ(machine.text(), lost);
  machine.restart();
  EXPECT_EQ(machine.text(),
            lost.substr(0, lost.find("ml_run_gpu_info")) + lost.substr(lost.find("ml_throttled")));
}

TEST(RunJoin, ReadsTheStateOfAnEarlierVersion) {
  ProcessKin kin{"/nowhere"};
  RunJoin join(kin);
  EXPECT_TRUE(join.restore("joined\talice\tresnet\t80\t-\n"));
  EXPECT_FALSE(join.restore("joined\talice\tresnet\t80\t-\t1\tpower\t-2\n"));
  EXPECT_FALSE(join.restore("joined\talice\tresnet\t80\t-\t1\tpower\n"));
}

TEST(RunJoin, SaysNothingOfEnergyThatTheDeviceDoesNotTell) {
  JoinMachine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.has_energy = false;
  gpu.processes = {JoinMachine::use(10, 0, std::nullopt)};
  machine.second();
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

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
