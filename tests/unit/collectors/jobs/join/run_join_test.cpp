#include "collectors/jobs/join/run_join.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "exporter/store/store.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {
namespace {

using workloads::DeviceUse;
using workloads::ProcessUse;

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;

/// A machine whose state the test sets each second. Returns the totals of the runs.
class Machine {
 public:
  void process(int pid, int parent, const std::string& cgroup) {
    tree_.write(std::to_string(pid) + "/stat",
                std::to_string(pid) + " (x) S " + std::to_string(parent) + " 1");
    tree_.write(std::to_string(pid) + "/cgroup", "0::" + cgroup + "\n");
    groups_[pid] = cgroup;
  }
  void tells(int pid, std::uint32_t uid, const std::string& user, const std::string& run) {
    jobs.processes.push_back({{uid, pid, 5}, {user, run}});
    jobs.runs.push_back({user, run});
  }
  DeviceUse& device(const std::string& uuid, unsigned index = 0) {
    DeviceUse& device = devices.emplace_back();
    device.uuid = uuid;
    device.index = index;
    device.has_energy = true;
    return device;
  }
  ProcessUse in_group(int pid, std::uint32_t uid = kAlice) {
    ProcessUse result = use(pid, 0, 0, uid);
    result.group = groups_.at(pid);
    return result;
  }
  static ProcessUse use(int pid, double joules, std::optional<double> busy, std::uint32_t uid = kAlice) {
    ProcessUse use;
    use.id = {pid, 5};
    use.uid = uid;
    use.present = true;
    use.energy_joules = joules;
    use.busy_seconds = busy;
    return use;
  }
  /// `listed`: the processes were read again.
  void second(bool listed = true) {
    now_ += std::chrono::seconds(1);
    DeviceUses uses;
    for (DeviceUse& device : devices) {
      device.at = now_;
      if (listed) device.listed_at = now_;
      uses.push_back(std::make_shared<DeviceUse>(device));
    }
    kin_.begin_pass(now_);
    join_->update(jobs, uses);
  }
  /// Continues with what the state file keeps.
  void restart() {
    const std::string saved = join_->saved();
    join_.emplace(kin_);
    ASSERT_TRUE(join_->restore(saved));
  }
  /// Sorted by run.
  std::string text() const {
    Store store;
    SeriesList list(store.attach());
    join_->write(list);
    list.commit(now_);
    std::multimap<std::string, std::string> lines;  // by the labels `run` and `user`
    store.walk([&](const Family& family) {
      family.for_each([&](const Series& series) {
        std::string labels;
        for (const auto& [name, value] : series.labels().pairs()) {
          labels += (labels.empty() ? "" : ",") + std::string(name) + "=\"" + std::string(value) + '"';
        }
        const auto pairs = series.labels().pairs();
        lines.emplace(std::string(pairs[1].second) + ' ' + std::string(pairs[0].second),
                      std::string(family.descriptor().name) + "{" + labels + "} " +
                          std::to_string(series.value()).substr(0, 6) + "\n");
      });
    });
    std::string text;
    for (const auto& [run, line] : lines) text += line;
    return text;
  }

  /// The run of a process, as other parts of the daemon see it.
  std::string run_of(int pid) {
    RunBook book;
    book.publish(join_->take_runs());
    const auto run = book.of({pid, 5});
    return run ? run->user + "/" + run->run : "none";
  }

  RunList jobs;
  std::vector<DeviceUse> devices;

 private:
  Tree tree_ = make_tree({});
  std::map<int, std::string> groups_;
  ProcessKin kin_{tree_.path()};
  std::optional<RunJoin> join_{std::in_place, kin_};
  Nanoseconds now_{};
};

TEST(RunJoin, PublishesTheRunsOfProcesses) {
  Machine machine;
  machine.process(10, 1, "/system.slice/train.service");
  machine.process(11, 1, "/system.slice/train.service");
  machine.process(12, 1, "/system.slice/other.service");
  machine.tells(10, kAlice, "alice", "resnet");
  machine.device("A").processes = {machine.in_group(10), machine.in_group(11), machine.in_group(12)};
  machine.second();
  EXPECT_EQ(machine.run_of(11), "alice/resnet");
  machine.second();
  EXPECT_EQ(machine.run_of(12), "none");
  machine.devices[0].processes[0].present = false;
  machine.second();
  EXPECT_EQ(machine.run_of(10), "none");
}

TEST(RunJoin, GivesARunTheEnergyAndTheIdleTimeOfItsProcess) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A", 3);
  gpu.processes = {Machine::use(10, 100, 0.5)};
  machine.second();
  gpu.processes = {Machine::use(10, 250, 0.75)};
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 250.00\n"
      "ml_gpu_idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"3\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, SumsTwoProcessesOfARunOnAGpu) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.tells(11, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {Machine::use(10, 0, 0), Machine::use(11, 0, 0)};
  machine.second();
  gpu.processes = {Machine::use(10, 30, 0.25), Machine::use(11, 60, 0.5)};
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 90.000\n"
      "ml_gpu_idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.2500\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, KeepsTwoRunsOnAGpuApart) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.tells(11, kBob, "bob", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {Machine::use(10, 0, 0), Machine::use(11, 0, 0, kBob)};
  machine.second();
  gpu.processes = {Machine::use(10, 30, 0.25), Machine::use(11, 60, 1, kBob)};
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
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.devices.reserve(2);
  DeviceUse& one = machine.device("B", 0);
  DeviceUse& other = machine.device("A", 1);
  one.processes = other.processes = {Machine::use(10, 7, 0)};
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
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {Machine::use(10, 0, 0)};
  machine.second();
  for (int i = 0; i < 9; ++i) machine.second(false);
  gpu.processes = {Machine::use(10, 0, 8)};  // of ten seconds
  machine.second();
  machine.second(false);
  EXPECT_NE(machine.text().find("idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 2.0000"),
            std::string::npos)
      << machine.text();
}

TEST(RunJoin, CountsNoEnergyTwiceAndNoIdleTimeWhereADeviceWasAway) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  machine.device("A").processes = {Machine::use(10, 100, 0)};
  machine.second();
  const std::vector<DeviceUse> away = std::exchange(machine.devices, {});
  machine.second();
  machine.second();
  machine.devices = away;
  machine.devices[0].processes = {Machine::use(10, 130, 0)};
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_energy_joules_total{run=\"resnet\",user=\"alice\"} 130.00\n"
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

TEST(RunJoin, TakesTheDevicesBusyTimeWhereTheProcessesIsNotKnownAndItIsAlone) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {Machine::use(10, 0, std::nullopt)};
  gpu.busy_seconds = 100;
  machine.second();
  gpu.busy_seconds = 100.25;
  machine.second();
  EXPECT_NE(machine.text().find("idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500"),
            std::string::npos)
      << machine.text();
  gpu.processes.push_back(Machine::use(77, 0, std::nullopt, kBob));
  machine.second();
  EXPECT_NE(machine.text().find("idle_allocated_seconds_total{run=\"resnet\",user=\"alice\"} 0.7500"),
            std::string::npos)
      << machine.text();
}

TEST(RunJoin, SumsTheTimeThatARunsGpusLoseByThrottling) {
  Machine machine;
  machine.devices.reserve(2);
  machine.tells(10, kAlice, "alice", "resnet");
  for (const char* const uuid : {"A", "B"}) {
    DeviceUse& gpu = machine.device(uuid);
    gpu.has_energy = false;
    gpu.processes = {Machine::use(10, 0, std::nullopt)};
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
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.has_energy = false;
  gpu.processes = {Machine::use(10, 0, std::nullopt)};
  machine.second();
  machine.second();
  EXPECT_EQ(
      machine.text(),
      "ml_run_gpu_info{run=\"resnet\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

// A server reports while its engine computes, in the same container.
TEST(RunJoin, FindsTheRunByTheCgroup) {
  Machine machine;
  machine.process(10, 1, "/system.slice/serve.service");
  machine.process(20, 1, "/system.slice/serve.service");
  machine.tells(10, kAlice, "alice", "serve");
  machine.device("A").processes = {machine.in_group(20)};
  machine.second();
  EXPECT_NE(machine.text().find(
                "ml_run_gpu_info{run=\"serve\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"}"),
            std::string::npos);
}

TEST(RunJoin, TrustsNoCgroupOfAnotherUserNorTheRoots) {
  Machine machine;
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
TEST(RunJoin, FindsTheRunByKinshipWhereTheCgroupHasTwo) {
  const std::string session = "/user.slice/user-1000.slice/session-3.scope";
  Machine machine;
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

TEST(RunJoin, IsNotFooledByAPidThatIsUsedAnew) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {Machine::use(10, 50, 0)};
  gpu.processes[0].id.start_ticks = 6;
  machine.second();
  EXPECT_EQ(machine.text(), "");
}

TEST(RunJoin, CountsTheLastFiguresOfAProcessThatHasEnded) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "resnet");
  DeviceUse& gpu = machine.device("A");
  gpu.processes = {Machine::use(10, 50, 0)};
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

TEST(RunJoin, SplitsAProcessThatTellsOfTwoRuns) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "a");
  machine.tells(10, kAlice, "alice", "b");
  machine.device("A").processes = {Machine::use(10, 50, 0)};
  machine.second();
  EXPECT_EQ(machine.text(),
            "ml_energy_joules_total{run=\"a\",user=\"alice\"} 25.000\n"
            "ml_run_gpu_info{run=\"a\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n"
            "ml_energy_joules_total{run=\"b\",user=\"alice\"} 25.000\n"
            "ml_run_gpu_info{run=\"b\",user=\"alice\",gpu=\"0\",uuid=\"A\",source=\"process\"} 1.0000\n");
}

// Slurm gives each task a cgroup of its own. Only rank 0 reports, as with most clients.
class JobOfFour : public Machine {
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

TEST(RunJoin, GuessesThatARunHasTheGpusOfItsJobThatNoOtherClaims) {
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

TEST(RunJoin, GuessesNothingWhereTwoRunsOfTheWorkloadTell) {
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

TEST(RunJoin, GuessesNothingOfAnotherUserOrAnotherJob) {
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

TEST(RunJoin, MarksAGpuThatAlsoHasAProcessOfItsOwnAsNoGuess) {
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
TEST(RunJoin, GivesTheGpusToTheNextRunOfTheSameProcess) {
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
TEST(RunJoin, GivesARunNothingOfWhatIsUsedAfterItsEnd) {
  Machine machine;
  machine.tells(10, kAlice, "alice", "bert");
  machine.devices.reserve(2);
  for (const char* const gpu : {"A", "B"}) machine.device(gpu).processes = {Machine::use(10, 100, 0)};
  machine.second();
  machine.jobs.processes.clear();
  machine.jobs.ended = machine.jobs.runs;
  for (const double joules : {120, 500, 1000}) {
    for (DeviceUse& gpu : machine.devices) gpu.processes = {Machine::use(10, joules, 0)};
    machine.second();
  }
  EXPECT_EQ(machine.text(),
            "ml_energy_joules_total{run=\"bert\",user=\"alice\"} 240.00\n"
            "ml_gpu_idle_allocated_seconds_total{run=\"bert\",user=\"alice\"} 2.0000\n");
}

// Rank 0 has reported the end and exited; the other ranks still hold their GPUs.
TEST(RunJoin, LeavesTheRanksWithTheirRunWhenRank0HasEnded) {
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
