#include "collectors/attribution/cgroup/new_groups.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpumeter::cgroup {
namespace {

/// A folder in place of /sys/fs/cgroup. Names are those of real machines.
class NewGroupsTest : public testing::Test {
 protected:
  NewGroupsTest() { std::filesystem::remove_all(root_); }
  ~NewGroupsTest() override { std::filesystem::remove_all(root_); }

  void add(const std::string& path) { std::filesystem::create_directories(root_ + path); }
  void remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }
  void be_v2() {
    add("/");
    std::ofstream(root_ + "/cgroup.controllers") << "cpu memory\n";
  }
  /// Whether the look after this group's creation finds a new workload.
  bool finds(const std::string& path) {
    add(path);
    return groups_.look();
  }

  static constexpr const char* kPod =
      "/kubepods.slice/kubepods-burstable.slice/"
      "kubepods-burstable-pod5b51b1a2_54e9_4d3c_9f5e_aaaaaaaaaaaa.slice";
  static constexpr const char* kContainer =
      "/cri-containerd-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope";

  const std::string root_ = testing::TempDir() + "/new-groups-" + std::to_string(getpid());
  NewGroups groups_{root_};
};

TEST_F(NewGroupsTest, OfSlurmJobs) {
  be_v2();
  add("/system.slice/slurmstepd.scope/job_1/step_0");
  EXPECT_FALSE(groups_.look()) << "the first look only begins";
  EXPECT_FALSE(groups_.look());
  EXPECT_TRUE(finds("/system.slice/slurmstepd.scope/job_2"));
  EXPECT_FALSE(groups_.look()) << "once";
  EXPECT_FALSE(finds("/system.slice/slurmstepd.scope/system"));
  EXPECT_FALSE(finds("/system.slice/cron.service"));
  EXPECT_TRUE(finds("/system.slice/node7_slurmstepd.scope/job_3/step_0/user/task_0"))
      << "of a slurmd that started later";
  EXPECT_TRUE(finds("/system.slice/node7_slurmstepd.scope/job_4"));
}

TEST_F(NewGroupsTest, OfPodsAndTheirContainers) {
  be_v2();
  EXPECT_FALSE(groups_.look());
  EXPECT_FALSE(finds("/kubepods.slice/kubepods-burstable.slice")) << "the kubelet starts";
  EXPECT_TRUE(finds(kPod));
  EXPECT_TRUE(finds(std::string(kPod) + kContainer));
  EXPECT_FALSE(finds(std::string(kPod) + kContainer + "/inner")) << "the container's own groups";
  const std::size_t watches = groups_.watches();
  remove(kPod);
  EXPECT_FALSE(groups_.look());
  EXPECT_EQ(groups_.watches(), watches - 1);
  EXPECT_TRUE(finds("/kubepods/besteffort/pod5b51b1a2-54e9-4d3c-9f5e-aaaaaaaaaaaa"))
      << "by the kubelet itself";
}

TEST_F(NewGroupsTest, OfTheFirstVersion) {
  add("/freezer/slurm/uid_1000/job_1");
  add("/memory/kubepods/burstable");
  add("/cpu/slurm/uid_1000");
  EXPECT_FALSE(groups_.look());
  EXPECT_TRUE(finds("/freezer/slurm/uid_1000/job_2"));
  EXPECT_TRUE(finds("/freezer/slurm/uid_1001/job_3"));
  EXPECT_TRUE(finds("/memory/kubepods/burstable/pod5b51b1a2-54e9-4d3c-9f5e-aaaaaaaaaaaa"));
  EXPECT_FALSE(finds("/cpu/slurm/uid_1000/job_4")) << "not a hierarchy that is watched";
}

TEST_F(NewGroupsTest, OfUsersAreNotBelieved) {
  be_v2();
  add("/user.slice/user-1000.slice/user@1000.service/app.slice");
  EXPECT_FALSE(groups_.look());
  EXPECT_FALSE(finds("/user.slice/user-1000.slice/user@1000.service/app.slice/slurmstepd.scope/job_7"));
  EXPECT_FALSE(finds("/user.slice/kubepods.slice/kubepods-pod5b51b1a2_54e9_4d3c_9f5e_aaaaaaaaaaaa.slice"));
}

TEST_F(NewGroupsTest, AreLimited) {
  be_v2();
  for (std::size_t i = 0; i < NewGroups::kMostWatches + 10; ++i) add("/a" + std::to_string(i) + ".slice");
  EXPECT_FALSE(groups_.look());
  EXPECT_EQ(groups_.watches(), NewGroups::kMostWatches);
}

TEST_F(NewGroupsTest, AMachineWithoutGroupsHasNone) {
  EXPECT_FALSE(groups_.look());
  EXPECT_FALSE(groups_.look());
  EXPECT_EQ(groups_.watches(), 0U);
}

}  // namespace
}  // namespace gpumeter::cgroup
