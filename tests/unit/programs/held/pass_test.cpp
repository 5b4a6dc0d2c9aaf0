#include "programs/held/pass.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "collectors/attribution/names/manual_file.hpp"
#include "tests/fakes/requirements.hpp"

namespace gpumeter::held {
namespace {

namespace fs = std::filesystem;
using workloads::DeviceSelector;

constexpr std::chrono::seconds kLong(3600);

/// A machine with three NVIDIA GPUs and an AMD card. Its files stand for device nodes.
class HeldPassTest : public testing::Test {
 protected:
  HeldPassTest() {
    char name[] = "/tmp/gpumeter-held-XXXXXX";
    root_ = mkdtemp(name);
    settings_.roots = {root_ + "/dev", root_ + "/proc", root_ + "/sys"};
    settings_.folder = root_ + "/records";
    fs::create_directories(settings_.folder);
    fs::permissions(settings_.folder, fs::perms(0755));
    for (const std::string gpu : {"0", "1", "2"}) {
      write("/dev/nvidia" + gpu, "");
      write("/proc/driver/nvidia/gpus/0000:0" + gpu + ":00.0/information",
            "Model: \t\t NVIDIA A100\nDevice Minor: \t " + gpu + "\n");
    }
    write("/dev/dri/renderD128", "");
    fs::create_directories(root_ + "/sys/devices/0000:0a:00.0");
    fs::create_directories(root_ + "/sys/class/drm/renderD128");
    fs::create_symlink(root_ + "/sys/devices/0000:0a:00.0", root_ + "/sys/class/drm/renderD128/device");
  }
  ~HeldPassTest() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(root_ + name).parent_path());
    std::ofstream(root_ + name) << text;
  }
  std::string group(const std::string& job) const { return root_ + kSlurm + "/job_" + job; }
  /// A group of cgroup v2 whose filter denies these GPUs, or of v1.
  void job(const std::string& id, std::set<std::string> denied) {
    write(std::string(kSlurm) + "/job_" + id + "/cgroup.controllers", "");
    write(std::string(kSlurm) + "/job_" + id + "/step_extern/slurm/cgroup.procs", "");
    denied_[group(id) + "/step_extern/slurm"] = std::move(denied);
  }
  Result<Outcome> run(std::chrono::seconds after = kLong) {
    const Ask ask = [&](const std::string& group, std::span<const std::string> paths) {
      asked_.push_back(group);
      if (!denied_.contains(group)) return Result<std::vector<Access>>(Error("no such group"));
      std::vector<Access> answers;
      for (const std::string& path : paths) {
        const std::string node = path.substr(settings_.roots.dev.size() + 1);
        answers.push_back(denied_.at(group).contains(node) ? Access::denied : Access::allowed);
      }
      return Result<std::vector<Access>>(answers);
    };
    struct stat now {};
    stat(settings_.folder.c_str(), &now);
    return pass(settings_, ask, std::chrono::seconds(now.st_mtim.tv_sec) + after);
  }
  /// The job's file, without the inode of its group.
  std::string record(const std::string& job) const {
    std::ifstream file(settings_.folder + "/slurm_job:" + job);
    std::string text;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("GROUP=")) text += line + "\n";
    }
    return text;
  }
  /// What the daemon publishes, as "JOB GPU".
  std::vector<std::string> held() const {
    std::vector<std::string> all;
    const auto names = manual::read_held(settings_.folder, settings_.roots.sysfs);
    for (const auto& each : names->allocations) {
      all.push_back(each.workload.name + " " + each.device.id);
    }
    return all;
  }

  static constexpr const char* kSlurm = "/sys/fs/cgroup/system.slice/slurmstepd.scope";
  std::string root_;
  Settings settings_;
  std::map<std::string, std::set<std::string>> denied_;  // by group
  std::vector<std::string> asked_;
};

TEST_F(HeldPassTest, FindsTheNodeOfEachGpu) {
  fs::create_directories(root_ + "/proc/driver/nvidia/capabilities/gpu2/mig/gi1");
  EXPECT_EQ(read_gpus(settings_.roots), (std::vector<Gpu>{{"0000:00:00.0", "nvidia0"},
                                                          {"0000:01:00.0", "nvidia1"},
                                                          {"0000:0a:00.0", "dri/renderD128"}}));
}

TEST_F(HeldPassTest, EntersAnOldEnoughGroupOnce) {
  job("7", {"nvidia1", "nvidia2"});
  ASSERT_TRUE(run());
  EXPECT_EQ(asked_, std::vector<std::string>());
  EXPECT_EQ(record("7"), "WORKLOAD=7\nKIND=slurm_job\nSTATE=pending\n");
  ASSERT_TRUE(run(settings_.settle - std::chrono::seconds(5)));
  EXPECT_EQ(asked_, std::vector<std::string>());

  ASSERT_TRUE(run());
  ASSERT_TRUE(run());
  EXPECT_EQ(asked_, std::vector<std::string>{group("7") + "/step_extern/slurm"});
  EXPECT_EQ(record("7"),
            "WORKLOAD=7\nKIND=slurm_job\nSTATE=asked\nALLOWED=0000:00:00.0\nALLOWED=0000:0a:00.0\n"
            "DENIED=0000:01:00.0\nDENIED=0000:02:00.0\n");
}

TEST_F(HeldPassTest, AGroupThatCannotBeEnteredIsNotEnteredAgain) {
  settings_.settle = {};
  job("7", {});
  denied_.clear();
  EXPECT_EQ(run()->failures, std::vector<std::string>{"job 7: no such group"});
  EXPECT_EQ(record("7"), "WORKLOAD=7\nKIND=slurm_job\nSTATE=failed\n");
  EXPECT_EQ(run()->failures, std::vector<std::string>());
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(HeldPassTest, AnotherJobsFilterShowsThatAGpuIsManaged) {
  settings_.settle = {};
  job("7", {"nvidia1", "nvidia2"});
  ASSERT_TRUE(run());
  EXPECT_EQ(held(), std::vector<std::string>());
  job("8", {"nvidia0", "nvidia1"});
  ASSERT_TRUE(run());
  EXPECT_EQ(held(), (std::vector<std::string>{"7 0000:00:00.0", "8 0000:02:00.0"}));
}

TEST_F(HeldPassTest, AJobEndsWithItsGroup) {
  settings_.settle = {};
  job("7", {"nvidia1", "nvidia2"});
  job("8", {"nvidia0", "nvidia1"});
  ASSERT_TRUE(run());
  fs::remove_all(group("8"));
  EXPECT_EQ(held(), std::vector<std::string>{"7 0000:00:00.0"});
  ASSERT_TRUE(run());
  EXPECT_EQ(record("8"), "");
  EXPECT_EQ(held(), std::vector<std::string>{"7 0000:00:00.0"});  // it is still known as managed
}

TEST_F(HeldPassTest, ARequeuedJobIsAskedAgain) {
  settings_.settle = {};
  job("7", {"nvidia1", "nvidia2"});
  job("8", {"nvidia0"});
  ASSERT_TRUE(run());
  EXPECT_EQ(held(), (std::vector<std::string>{"7 0000:00:00.0", "8 0000:01:00.0", "8 0000:02:00.0"}));
  fs::rename(group("7"), root_ + "/old");
  job("7", {"nvidia0", "nvidia1"});
  ASSERT_TRUE(run());
  EXPECT_EQ(held(), (std::vector<std::string>{"7 0000:02:00.0", "8 0000:01:00.0", "8 0000:02:00.0"}));
}

TEST_F(HeldPassTest, WithoutAFilterNothingIsHeldUnlessTheAdministratorNamesTheGpus) {
  settings_.settle = {};
  job("7", {});
  ASSERT_TRUE(run());
  EXPECT_EQ(held(), std::vector<std::string>());
  settings_.managed = {"nvidia1", "dri"};
  ASSERT_TRUE(run());
  EXPECT_EQ(held(), (std::vector<std::string>{"7 0000:01:00.0", "7 0000:0a:00.0"}));
  EXPECT_EQ(asked_.size(), 1U);
}

TEST_F(HeldPassTest, GivesTheDaemonTheJobsLabels) {
  settings_.settle = {};
  settings_.managed = {"nvidia0"};
  job("7", {});
  ASSERT_TRUE(run());
  const auto names = manual::read_held(settings_.folder, settings_.roots.sysfs);
  const workloads::Allocation want = {.device = {DeviceSelector::By::pci_address, "0000:00:00.0", ""},
                                      .workload = {cgroup::Kind::slurm_job, "7"},
                                      .source = workloads::AllocationSource::cgroup,
                                      .names = {{"slurm_job", "7"}}};
  EXPECT_EQ(names->allocations, std::vector<workloads::Allocation>{want});
}

TEST_F(HeldPassTest, LeavesAFrozenGroupAlone) {
  settings_.settle = {};
  job("7", {});
  write(std::string(kSlurm) + "/job_7/step_extern/slurm/cgroup.events", "populated 1\nfrozen 1\n");
  ASSERT_TRUE(run());
  EXPECT_EQ(asked_, std::vector<std::string>());
  EXPECT_EQ(record("7"), "WORKLOAD=7\nKIND=slurm_job\nSTATE=pending\n");
}

TEST_F(HeldPassTest, EntersOnlyGroupsWithoutProcessesOfTheJob) {
  const std::string v2 = std::string(kSlurm) + "/job_7";
  write(v2 + "/cgroup.controllers", "");
  write(v2 + "/step_0/user/task_0/cgroup.procs", "");
  EXPECT_EQ(door_of(group("7")), std::nullopt);
  write(v2 + "/step_0/slurm/cgroup.procs", "");
  EXPECT_EQ(door_of(group("7")), group("7") + "/step_0/slurm");
  write(v2 + "/step_batch/slurm/cgroup.procs", "");
  EXPECT_EQ(door_of(group("7")), group("7") + "/step_batch/slurm");
  for (const std::string hierarchy : {"freezer", "devices"}) {
    const std::string v1 = "/sys/fs/cgroup/" + hierarchy + "/slurm/uid_1/job_8";
    write(v1 + "/cgroup.procs", "");
    EXPECT_EQ(door_of(root_ + v1).has_value(), hierarchy == "devices") << hierarchy;
  }
}

TEST_F(HeldPassTest, AProcessAnswersAndEnds) {
  if (const auto reason = no_process_in_own_memory(); !reason.empty()) GTEST_SKIP() << reason;
  write("/group/cgroup.procs", "");
  const std::vector<std::string> paths = {root_ + "/dev/nvidia0", root_ + "/dev/none"};
  const auto answers = ask(root_ + "/group", paths);
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(*answers, (std::vector<Access>{Access::allowed, Access::unknown}));
  std::ostringstream entered;
  entered << std::ifstream(root_ + "/group/cgroup.procs").rdbuf();
  EXPECT_EQ(entered.str(), "0");
  EXPECT_FALSE(ask(root_ + "/none", paths));
}

TEST_F(HeldPassTest, RefusesAFolderInWhichOthersMayWrite) {
  fs::permissions(settings_.folder, fs::perms(0777));
  EXPECT_FALSE(run());
  EXPECT_FALSE(manual::read_held(settings_.folder, settings_.roots.sysfs));
  settings_.folder = root_ + "/none";
  EXPECT_FALSE(run());
  EXPECT_EQ(manual::read_held(settings_.folder, settings_.roots.sysfs)->allocations.size(), 0U);
}

}  // namespace
}  // namespace gpumeter::held
