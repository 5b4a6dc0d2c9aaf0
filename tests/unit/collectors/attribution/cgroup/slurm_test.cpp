#include "collectors/attribution/cgroup/slurm.hpp"

#include <gtest/gtest.h>

namespace gpumeter::cgroup {
namespace {

TEST(SlurmFolder, OfCgroupV1) {
  const SlurmFolder folder = slurm_folder("/slurm_node3/uid_1000/job_77/step_batch/task_2");
  EXPECT_EQ(folder.job, "77");
  EXPECT_EQ(folder.node, "node3");
  EXPECT_EQ(folder.uid, "1000");
  EXPECT_EQ(folder.step, "batch");
  EXPECT_EQ(folder.task, "2");
  EXPECT_EQ(slurm_folder("/slurm/uid_1000/job_77").id(), "77");
}

TEST(SlurmFolder, OfCgroupV2) {
  const SlurmFolder folder = slurm_folder("/system.slice/slurmstepd.scope/job_77/step_0/user/task_special");
  EXPECT_EQ(folder.job, "77");
  EXPECT_EQ(folder.step, "0");
  EXPECT_EQ(folder.task, "special");
  EXPECT_FALSE(folder.daemon);
  EXPECT_TRUE(slurm_folder("/system.slice/slurmstepd.scope/job_77/step_0/slurm").daemon);
  EXPECT_EQ(slurm_folder("/hpc.slice/hpc-gpu.slice/n1_slurmstepd.scope/job_77").node, "n1");
}

TEST(SlurmFolder, ByTheNameThatSlurmGivesSince2605) {
  const SlurmFolder folder =
      slurm_folder("/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_interactive/user/task_0");
  EXPECT_EQ(folder.job, "");
  EXPECT_EQ(folder.sluid, "s5K1KKYAYG5D00");
  EXPECT_EQ(folder.id(), "s5K1KKYAYG5D00");
  EXPECT_EQ(folder.step, "interactive");
}

TEST(SlurmFolder, WhatIsNoJobs) {
  for (const char* const path :
       {"", "/", "/slurm", "/slurm/uid_1000", "/slurm/uid_x/job_1", "/slurm/uid_1/job_",
        "/slurm/uid_1/job_1x", "/slurmish/uid_1/job_1", "/x/slurm/uid_1/job_1",
        "/system.slice/slurmstepd.scope/system",  // processes wait there for their job
        "/system.slice/slurmd.service", "/slurmstepd.scope/job_1",
        "/system.slice/slurmstepd.scope/s5K1KKYAYG5D0",    // 12 digits
        "/system.slice/slurmstepd.scope/s5K1KKYAYG5D000",  // 14
        "/system.slice/slurmstepd.scope/s5K1KKYAYG5DIL",   // not in the alphabet
        "/system.slice/slurmstepd.scope/S5K1KKYAYG5D00",
        "/system.slice/a.service/slurmstepd.scope/job_1",  // not below slices only
        "/user.slice/slurmstepd.scope/job_1", "/user-7.slice/slurmstepd.scope/job_1"}) {
    EXPECT_EQ(slurm_folder(path).id(), "") << path;
  }
}

TEST(Sluid, HasThirteenDigitsOfAtMost64Bits) {
  for (const char* const text : {"s5K1KKYAYG5D00", "sEKNKTV3WPV500", "s0000000000001", "sFZZZZZZZZZZZZ"}) {
    EXPECT_TRUE(is_sluid(text)) << text;
  }
  for (const char* const text : {"", "5K1KKYAYG5D00", "s5K1KKYAYG5D0U", "sG000000000000"}) {
    EXPECT_FALSE(is_sluid(text)) << text;
  }
}

}  // namespace
}  // namespace gpumeter::cgroup
