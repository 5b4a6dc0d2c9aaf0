#include "collectors/attribution/cgroup/slurm.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collectors/attribution/names/slurm.hpp"

namespace gpumeter::slurm {
namespace {

TEST(SlurmJobFileTest, ReadsWhatAPrologOf2205Writes) {
  const auto job = parse_job(
      "SLURM_JOB_ID=12\nSLURM_JOB_UID=2001\nSLURM_JOB_USER=alice\nSLURM_JOB_ACCOUNT=nlp\n"
      "SLURM_JOB_PARTITION=gpu\nSLURM_JOB_GPUS=0,2\nCUDA_VISIBLE_DEVICES=0,2\nSLURM_JOB_START_TIME="
      "1700000000\n");

  ASSERT_TRUE(job);
  EXPECT_EQ(job->start, std::chrono::seconds(1'700'000'000));
  EXPECT_EQ(job->positions, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(
      labels_of(*job),
      (std::vector<Label>{
          {"slurm_account", "nlp"}, {"slurm_job", "12"}, {"slurm_partition", "gpu"}, {"user", "alice"}}));
}

TEST(SlurmJobFileTest, PrefersUuidsToPositions) {
  const auto job = parse_job(
      "SLURM_JOB_ID=12\nSLURM_JOB_GPUS=0,1,2\nSLURM_JOB_SLUID=s0DF1MC9QC0J00\nSLURM_JOB_QOS=high\n"
      "CUDA_VISIBLE_DEVICES=GPU-1,MIG-2,GPU-1\nROCR_VISIBLE_DEVICES=GPU-00000000000a11ce\n");

  ASSERT_TRUE(job);
  EXPECT_EQ(job->uuids, (std::vector<std::string>{"GPU-1", "MIG-2", "GPU-00000000000a11ce"}));
  EXPECT_TRUE(job->positions.empty());
  EXPECT_EQ(
      labels_of(*job),
      (std::vector<Label>{{"slurm_job", "12"}, {"slurm_qos", "high"}, {"slurm_sluid", "s0DF1MC9QC0J00"}}));
}

TEST(SlurmJobFileTest, ReadsRangesOfPositionsUpToTheLimit) {
  EXPECT_EQ(parse_job("SLURM_JOB_ID=1\nSLURM_JOB_GPUS=0-2,5,x,1\n")->positions,
            (std::vector<std::size_t>{0, 1, 2, 5}));
  EXPECT_EQ(parse_job("SLURM_JOB_ID=1\nSLURM_JOB_GPUS=7-18446744073709551615\n")->positions.size(),
            kMostGpus);
  EXPECT_EQ(parse_job("SLURM_JOB_ID=1\nCUDA_VISIBLE_DEVICES=3\n")->positions, std::vector<std::size_t>{3});
}

TEST(SlurmJobFileTest, RejectsATextWithoutAJob) {
  EXPECT_FALSE(parse_job(""));
  EXPECT_FALSE(parse_job("SLURM_JOB_ID=../1\n"));
  EXPECT_FALSE(parse_job("SLURM_JOB_ID=99999999999\n"));
}

TEST(SlurmJobFileTest, AUserMayClaimANameAndAnArrayOnly) {
  Job job = *parse_job("SLURM_JOB_ID=4\nSLURM_JOB_USER=alice\nSLURM_JOB_GPUS=1\n");
  add_claims(
      "SLURM_JOB_NAME=bert\nSLURM_ARRAY_JOB_ID=3\nSLURM_ARRAY_TASK_ID=1\nSLURM_JOB_USER=root\n"
      "SLURM_JOB_ACCOUNT=rich\nSLURM_JOB_GPUS=0,1,2,3\nSLURM_JOB_ID=5\n",
      job);

  EXPECT_EQ(job.positions, std::vector<std::size_t>{1});
  EXPECT_EQ(labels_of(job), (std::vector<Label>{{"slurm_array_job", "3"},
                                                {"slurm_array_task", "1"},
                                                {"slurm_job", "4"},
                                                {"slurm_job_name", "bert"},
                                                {"user", "alice"}}));
}

using workloads::DeviceSelector;

std::vector<std::string> minors(const GpuList& list) {
  std::vector<std::string> minors;
  for (std::size_t at = 0; at < list.size(); ++at) minors.push_back(list.at(at) ? list.at(at)->id : "?");
  return minors;
}

// As slurmd 22.05 prints it to stderr.
TEST(SlurmGpuListTest, ReadsWhatSlurmdPrints) {
  const GpuList list = GpuList::parse(
      "slurmd-node1: Gres Name=gpu Type=a100 Count=1 Index=0 ID=7696487 File=/dev/nvidia4 (null)\n"
      "slurmd-node1: Gres Name=gpu Type=a100 Count=3 Index=0 ID=7696487 File=/dev/nvidia[10,0,2-3] Cores=0 "
      "CoreCnt=2 "
      "(null)\n"
      "slurmd-node1: Gres Name=shard Type=a100 Count=8 Index=0 ID=1 File=/dev/nvidia9 (null)\n");

  EXPECT_EQ(minors(list), (std::vector<std::string>{"0", "2", "3", "4", "10"}));
  EXPECT_EQ(list.at(1), (DeviceSelector{DeviceSelector::By::minor, "2", "nvidia"}));
  EXPECT_FALSE(list.at(5));
}

TEST(SlurmGpuListTest, LinksDecideTheOrderIfEveryDeviceHasThem) {
  const GpuList list = GpuList::parse(
      "Name=gpu File=/dev/nvidia0 Links=4,-1,4\n"
      "Name=gpu File=/dev/nvidia1 Links=-1,4,4\n"
      "Name=gpu File=/dev/nvidia2 Links=4,4,-1\n");
  EXPECT_EQ(minors(list), (std::vector<std::string>{"1", "0", "2"}));
}

TEST(SlurmGpuListTest, ReadsGresConfWithCommentsAndAnyCase) {
  const GpuList list = GpuList::parse(
      "# name=gpu file=/dev/nvidia7\n"
      "NodeName=node1 name=gpu Type=mi300x file=/dev/dri/renderD129,/dev/dri/renderD128 # two\n");
  EXPECT_EQ(list.at(0), (DeviceSelector{DeviceSelector::By::minor, "128", ""}));
  EXPECT_EQ(minors(list), (std::vector<std::string>{"128", "129"}));
}

TEST(SlurmGpuListTest, AFileOfNoKnownNameKeepsItsPosition) {
  EXPECT_EQ(minors(GpuList::parse("Name=gpu File=/dev/accel0,/dev/nvidia1\n")),
            (std::vector<std::string>{"?", "1"}));
  EXPECT_EQ(GpuList::parse("Name=gpu File=/dev/nvidia[0-99999999999]").size(), GpuList::kMost);
  EXPECT_EQ(GpuList::parse("AutoDetect=nvml\n").size(), 0U);
}

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
  const cgroup::JobGroups groups = cgroup::read_job_groups(root_);
  EXPECT_TRUE(groups.has_slurm);
  group("/devices/slurm_node1/uid_2001/job_3");
  const std::map<std::string, std::string, std::less<>> folders = {
      {"3", root_ + "/fs/cgroup/devices/slurm_node1/uid_2001/job_3"},
      {"4", root_ + "/fs/cgroup/a.slice/b.slice/slurmstepd.scope/job_4"}};
  EXPECT_EQ(cgroup::read_job_groups(root_).folders, folders);
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
