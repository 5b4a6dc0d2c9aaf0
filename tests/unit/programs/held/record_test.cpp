#include "programs/held/record.hpp"

#include <gtest/gtest.h>

#include "collectors/attribution/names/manual_file.hpp"

namespace gpumeter::held {
namespace {

using Gpus = std::set<std::string>;
using State = Record::State;

TEST(HeldRecordTest, ReadsWhatItWrites) {
  const Record record = {
      State::asked, 5, {"0000:01:00.0", "0000:02:00.0"}, {"0000:03:00.0"}, {"0000:01:00.0"}};
  EXPECT_EQ(to_text("7", record),
            "WORKLOAD=7\nKIND=slurm_job\nSTATE=asked\nGROUP=5\nALLOWED=0000:01:00.0\nALLOWED=0000:02:00.0\n"
            "DENIED=0000:03:00.0\nGPU=0000:01:00.0\n");
  EXPECT_EQ(parse_record(to_text("7", record)), record);
  EXPECT_EQ(parse_record(to_text("7", {State::failed, 0, {}, {}, {}})).state, State::failed);
  EXPECT_EQ(parse_record("STATE=?\nx\n"), Record());
}

TEST(HeldRecordTest, TheDaemonReadsTheSameFile) {
  const auto grant =
      manual::parse_grant(to_text("7", {State::asked, 0, {"0000:01:00.0"}, {}, {"0000:02:00.0"}}));
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->workload, (workloads::WorkloadId{cgroup::Kind::slurm_job, "7"}));
  EXPECT_EQ(grant->gpus, std::vector<std::string>{"0000:02:00.0"});
}

/// The GPUs that the job `7` holds if its filter permits and denies these, `managed` are known and `named`
/// too.
Gpus held(const Gpus& allowed, const Gpus& denied, const Gpus& managed, const Gpus& named = {}) {
  Records records = {{"7", {State::asked, 0, allowed, denied, {"old"}}}};
  judge(records, managed, named);
  return records.at("7").gpus;
}

TEST(HeldRecordTest, AJobHoldsTheManagedGpusThatItsFilterPermits) {
  EXPECT_EQ(held({"a", "b", "display"}, {"c"}, {"a", "b", "c"}), (Gpus{"a", "b"}));
  EXPECT_EQ(held({"display"}, {"a", "b", "c"}, {"a", "b", "c"}), Gpus());
}

TEST(HeldRecordTest, WithoutADeniedGpuOnlyTheAdministratorsWordCounts) {
  EXPECT_EQ(held({"a", "b"}, {}, {"a", "b"}), Gpus());
  EXPECT_EQ(held({"a", "b"}, {}, {"a", "b"}, {"a"}), Gpus{"a"});
}

}  // namespace
}  // namespace gpumeter::held
