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

}  // namespace
}  // namespace gpumeter::jobs
