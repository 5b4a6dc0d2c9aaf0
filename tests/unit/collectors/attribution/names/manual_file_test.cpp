#include "collectors/attribution/names/manual_file.hpp"

#include <gtest/gtest.h>

namespace gpumeter::manual {
namespace {

using workloads::DeviceSelector;

TEST(ManualFileTest, ReadsWhatItWrites) {
  const Grant grant = {.workload = {cgroup::Kind::vm, "alice-vm.1"},
                       .user = "alice",
                       .gpus = {"GPU-1", "0000:0c:00.0"},
                       .since = std::chrono::seconds(1'700'000'000)};
  EXPECT_EQ(parse_grant(to_text(grant)), grant);
  EXPECT_EQ(file_name(grant.workload), "vm:alice-vm.1");
}

TEST(ManualFileTest, GivesOneAllocationForEachGpu) {
  const auto given =
      allocations_of(*parse_grant("WORKLOAD=lab\nUSER=bob\nGPU=GPU-1\nGPU=0000:0c:00.0\nGPU=GPU-1\n"));
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[0].device, (DeviceSelector{DeviceSelector::By::uuid, "GPU-1", ""}));
  EXPECT_EQ(given[1].device, (DeviceSelector{DeviceSelector::By::pci_address, "0000:0c:00.0", ""}));
  EXPECT_EQ(given[0].workload, (workloads::WorkloadId{cgroup::Kind::other, "lab"}));
  EXPECT_EQ(given[0].names, (std::vector<Label>{{"user", "bob"}}));
}

TEST(ManualFileTest, ANameIsAFilesNameToo) {
  EXPECT_TRUE(is_name("alice@lab:1"));
  for (const char* const wrong : {"", ".hidden", "../up", "a/b", "a b", "a\nb", "-x"}) {
    EXPECT_FALSE(is_name(wrong)) << wrong;
  }
  EXPECT_FALSE(is_name(std::string(kLongestName + 1, 'a')));
  EXPECT_FALSE(parse_grant("WORKLOAD=../up\nGPU=GPU-1\n"));
}

}  // namespace
}  // namespace gpumeter::manual
