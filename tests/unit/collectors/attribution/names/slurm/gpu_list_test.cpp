#include "collectors/attribution/names/slurm/gpu_list.hpp"

#include <gtest/gtest.h>

namespace gpumeter::slurm {
namespace {

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

}  // namespace
}  // namespace gpumeter::slurm
