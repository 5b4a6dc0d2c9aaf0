#include "collectors/attribution/names/slurm/folder.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collectors/attribution/names/slurm/job_groups.hpp"

namespace gpumeter::slurm {
namespace {

namespace fs = std::filesystem;
using workloads::DeviceSelector;
using workloads::NameKey;

class SlurmFolderTest : public testing::Test {
 protected:
  SlurmFolderTest() {
    char name[] = "/tmp/gpumeter-slurm-XXXXXX";
    root_ = mkdtemp(name);
    fs::create_directories(jobs());
    fs::permissions(jobs(), fs::perms(0755));
  }
  ~SlurmFolderTest() override { fs::remove_all(root_); }

  std::string jobs() const { return root_ + "/slurm"; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(root_ + name) << text; }
  void job(const std::string& id, const std::string& more = "") const {
    write("/slurm/" + id, "SLURM_JOB_ID=" + id + "\nSLURM_JOB_UID=" + std::to_string(getuid()) + "\n" + more);
  }
  void group(const std::string& path) const { fs::create_directories(root_ + "/fs/cgroup" + path); }
  Folder folder(const std::string& list = "") const { return Folder({jobs(), list, root_}); }
  /// Seconds after the file was written.
  std::chrono::seconds after(const std::string& id, int seconds) const {
    struct stat facts {};
    stat((jobs() + "/" + id).c_str(), &facts);
    return std::chrono::seconds(facts.st_mtim.tv_sec + seconds);
  }

  std::string root_;
};

TEST_F(SlurmFolderTest, GivesNamesAndAllocationsOfEachJob) {
  job("7", "SLURM_JOB_USER=alice\nSLURM_JOB_GPUS=1\nSLURM_JOB_START_TIME=1700000000\n");
  write("/slurm/7.name", "SLURM_JOB_NAME=bert\n");
  write("/slurm/notes", "SLURM_JOB_ID=9\n");
  write("/slurm/8", "SLURM_JOB_ID=7\n");
  Folder folder = this->folder();

  const auto names = folder.read(after("7", 1));

  ASSERT_TRUE(names);
  const std::vector<Label> labels = {{"slurm_job", "7"}, {"slurm_job_name", "bert"}, {"user", "alice"}};
  EXPECT_EQ(names->labels, (std::map<NameKey, std::vector<Label>>{{{NameKey::By::slurm_job, "7"}, labels}}));
  EXPECT_EQ(names->allocations,
            (std::vector<workloads::Allocation>{{.device = {DeviceSelector::By::position, "1", ""},
                                                 .workload = {cgroup::Kind::slurm_job, "7"},
                                                 .source = workloads::AllocationSource::slurm,
                                                 .since = std::chrono::seconds(1'700'000'000),
                                                 .names = labels}}));
  EXPECT_TRUE(folder.assumes_order());
}

TEST_F(SlurmFolderTest, ResolvesPositionsByTheNodesList) {
  job("7", "SLURM_JOB_GPUS=1\n");
  write("/gpus", "Name=gpu File=/dev/nvidia[0,2-3]\n");
  Folder folder = this->folder(root_ + "/gpus");

  const auto names = folder.read(after("7", 1));

  EXPECT_EQ(names->allocations.at(0).device, (DeviceSelector{DeviceSelector::By::minor, "2", "nvidia"}));
  EXPECT_FALSE(folder.assumes_order());
}

TEST_F(SlurmFolderTest, AJobEndsAMinuteAfterItsGroup) {
  job("7");
  group("/system.slice/slurmstepd.scope/job_7/step_batch");
  Folder folder = this->folder();
  EXPECT_EQ(folder.read(after("7", 3600))->labels.size(), 1U);

  fs::remove_all(root_ + "/fs/cgroup/system.slice/slurmstepd.scope/job_7");
  EXPECT_EQ(folder.read(after("7", 60))->labels.size(), 1U);
  EXPECT_EQ(folder.read(after("7", 61))->labels.size(), 0U);
}

TEST_F(SlurmFolderTest, WithoutSlurmsGroupsAJobStays) {
  job("7");
  EXPECT_EQ(folder().read(after("7", 864'000))->labels.size(), 1U);
}

TEST_F(SlurmFolderTest, AGroupNamedByTheSluidNamesTheWorkload) {
  job("7", "SLURM_JOB_SLUID=s0DF1MC9QC0J00\nCUDA_VISIBLE_DEVICES=GPU-1\n");
  group("/system.slice/node1_slurmstepd.scope/s0DF1MC9QC0J00");

  const auto names = folder().read(after("7", 3600));

  EXPECT_EQ(names->allocations.at(0).workload.name, "s0DF1MC9QC0J00");
  EXPECT_TRUE(names->labels.contains({NameKey::By::slurm_sluid, "s0DF1MC9QC0J00"}));
  EXPECT_TRUE(names->labels.contains({NameKey::By::slurm_job, "7"}));
}

TEST_F(SlurmFolderTest, FindsGroupsOfBothVersions) {
  group("/freezer/slurm_node1/uid_2001/job_3/step_0");
  group("/a.slice/b.slice/slurmstepd.scope/job_4");
  group("/user.slice/user-1.slice/slurmstepd.scope/job_5");
  const JobGroups groups = read_job_groups(root_);
  EXPECT_TRUE(groups.has_slurm);
  group("/devices/slurm_node1/uid_2001/job_3");
  const std::map<std::string, std::string, std::less<>> folders = {
      {"3", root_ + "/fs/cgroup/devices/slurm_node1/uid_2001/job_3"},
      {"4", root_ + "/fs/cgroup/a.slice/b.slice/slurmstepd.scope/job_4"}};
  EXPECT_EQ(read_job_groups(root_).folders, folders);
}

TEST_F(SlurmFolderTest, IgnoresFilesThatOthersCouldHaveMade) {
  job("7");
  fs::create_symlink(jobs() + "/7", jobs() + "/8");
  fs::create_hard_link(jobs() + "/7", jobs() + "/9");
  mkfifo((jobs() + "/10").c_str(), 0644);
  EXPECT_EQ(folder().read(after("7", 1))->labels.size(), 0U);  // 7 has a second name now

  fs::permissions(jobs(), fs::perms(0777));
  EXPECT_FALSE(folder().read(after("7", 1)));
  fs::create_directory_symlink(jobs(), root_ + "/link");
  EXPECT_FALSE(Folder({root_ + "/link", "", root_}).read(std::chrono::seconds(0)));
  EXPECT_EQ(Folder({root_ + "/none", "", root_}).read(std::chrono::seconds(0))->labels.size(), 0U);
}

TEST_F(SlurmFolderTest, TakesANameOnlyFromRootsFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make files of other users";
  write("/slurm/7", "SLURM_JOB_ID=7\nSLURM_JOB_UID=2001\n");
  write("/slurm/7.name", "SLURM_JOB_NAME=bert\n");
  const auto name_of = [&] {
    return folder().read(after("7", 1))->labels.at({NameKey::By::slurm_job, "7"}).size();
  };
  EXPECT_EQ(name_of(), 2U);
  ASSERT_EQ(chown((jobs() + "/7.name").c_str(), 2001, 0), 0);
  EXPECT_EQ(name_of(), 1U) << "the job's user could let it grow";
}

}  // namespace
}  // namespace gpumeter::slurm
