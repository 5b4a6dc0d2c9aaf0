#include "collectors/attribution/names/slurm/job_file.hpp"

#include <gtest/gtest.h>

namespace gpumeter::slurm {
namespace {

TEST(SlurmJobFileTest, ReadsWhatAPrologOf2205Writes) {
  const auto job = parse_job(
      "SLURM_JOB_ID=12\nSLURM_JOB_UID=2001\nSLURM_JOB_USER=alice\nSLURM_JOB_ACCOUNT=nlp\n"
      "SLURM_JOB_PARTITION=gpu\nSLURM_JOB_GPUS=0,2\nCUDA_VISIBLE_DEVICES=0,2\nSLURM_JOB_START_TIME="
      "1700000000\n");

  ASSERT_TRUE(job);
  EXPECT_EQ(job->uid, 2001U);
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

}  // namespace
}  // namespace gpumeter::slurm
