#include <gtest/gtest.h>

#include "collectors/amd/kfd/processes.hpp"
#include "tests/fakes/amd_card_test.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

using std::chrono::seconds;
using Processes = std::vector<DeviceProcess>;

constexpr double kGiB = 1 << 30;

KfdNode node(std::uint32_t gpu_id, int compute_units) {
  KfdNode node;
  node.gpu_id = gpu_id;
  node.compute_units = compute_units;
  return node;
}

/// A tree of the compute driver's processes with one card. Reads are allowed unless a test forbids them.
class CardProcessesTest : public testing::Test {
 protected:
  void write(const std::string& name, std::string_view content) {
    tree_.write("class/kfd/kfd/proc/" + name, content);
  }
  void open(const std::vector<KfdNode>& nodes) {
    card_.open(tree_.path(), nodes);
    card_.allow_hardware(true);
  }
  Processes listed(seconds elapsed = seconds(10)) {
    Processes list;
    EXPECT_EQ(card_.read({Tier::normal, seconds(100), elapsed}, list), ReadStatus::ok);
    return list;
  }
  ReadStatus refused() {
    Processes list;
    const ReadStatus status = card_.read({Tier::normal, seconds(100), seconds(10)}, list);
    EXPECT_EQ(list, Processes());
    return status;
  }

  const Tree tree_{{}};
  CardProcesses card_;
};

TEST_F(CardProcessesTest, MemoryAndTheShareOfTheComputeUnits) {
  write("10/vram_7", "1073741824\n");
  write("10/stats_7/cu_occupancy", "26\n");
  write("20/vram_7", "4096\n");
  write("20/stats_7/cu_occupancy", "0\n");
  open({node(7, 104)});
  EXPECT_EQ(listed(), (Processes{{10, kGiB, 2.5}, {20, 4096, 0}}));
  EXPECT_EQ(listed(seconds(0)), (Processes{{10, kGiB, 0}, {20, 4096, 0}}));  // nothing before the first read
}

TEST_F(CardProcessesTest, OneThatUsesOtherCardsIsNotHere) {
  write("10/vram_7", "0\n");
  write("10/stats_7/cu_occupancy", "0\n");
  write("10/vram_8", "4096\n");
  write("10/stats_8/cu_occupancy", "104\n");
  write("20/vram_8", "4096\n");
  open({node(7, 104)});
  EXPECT_EQ(listed(), Processes());
}

TEST_F(CardProcessesTest, OneAtWorkWithoutMemoryIsHere) {
  write("10/vram_7", "0\n");
  write("10/stats_7/cu_occupancy", "52\n");
  open({node(7, 104)});
  EXPECT_EQ(listed(), (Processes{{10, 0, 5}}));
}

TEST_F(CardProcessesTest, MoreComputeUnitsThanThereAreAreAll) {
  write("10/vram_7", "1\n");
  write("10/stats_7/cu_occupancy", "300\n");
  open({node(7, 104)});
  EXPECT_EQ(listed(), (Processes{{10, 1, 10}}));
}

TEST_F(CardProcessesTest, ThePartsOfADividedCardAddUp) {
  write("10/vram_7", "1000\n");
  write("10/stats_7/cu_occupancy", "38\n");
  write("10/vram_8", "500\n");
  write("10/stats_8/cu_occupancy", "0\n");
  write("20/vram_8", "30\n");
  write("20/stats_8/cu_occupancy", "19\n");
  write("20/vram_9", "1\n");  // another card
  open({node(7, 38), node(8, 38)});
  EXPECT_EQ(listed(), (Processes{{10, 1500, 5}, {20, 30, 2.5}}));
}

TEST_F(CardProcessesTest, AChipThatDoesNotTellHasNoBusyTime) {
  write("10/vram_7", "1000\n");
  write("10/stats_7/evicted_ms", "0\n");
  open({node(7, 80)});
  EXPECT_EQ(listed(), (Processes{{10, 1000, {}}}));
}

TEST_F(CardProcessesTest, ACardThatMayNotBeReadIsAskedForNothing) {
  write("10/vram_7", "1000\n");
  write("10/stats_7/cu_occupancy", "38\n");
  open({node(7, 38)});
  card_.allow_hardware(false);
  EXPECT_EQ(listed(), (Processes{{10, 1000, {}}}));
}

TEST_F(CardProcessesTest, NobodyIsNotTheSameAsNotTold) {
  open({node(7, 38)});
  EXPECT_EQ(refused(), ReadStatus::unsupported);  // no compute driver
  write(".keep", "");
  EXPECT_EQ(listed(), Processes());
  open({});
  EXPECT_EQ(refused(), ReadStatus::unsupported);  // not one of its cards
  open({node(7, 38)});
  card_.close();
  EXPECT_EQ(refused(), ReadStatus::unsupported);
}

/// The same through the device, which finds its node in the topology and detects whether it sleeps.
class AmdDeviceProcesses : public OneCard {
 protected:
  AmdDeviceProcesses() {
    tree_.write("class/kfd/kfd/topology/nodes/1/gpu_id", "52321\n");
    tree_.write("class/kfd/kfd/topology/nodes/1/properties",
                "simd_count 416\nsimd_per_cu 4\ngfx_target_version 90010\nlocation_id 3072\ndomain 0\n");
    tree_.write("class/kfd/kfd/proc/4711/vram_52321", "1073741824\n");
    tree_.write("class/kfd/kfd/proc/4711/stats_52321/cu_occupancy", "52\n");
    device_ = collector().device(discovered_);
    lists_ = dynamic_cast<ListsProcesses*>(device_.get());
  }
  Collector& collector() {
    collector_ = *open_amd({tree_.path(), "/proc", &kRealClock, {{"ids_file", {tree_ / "amdgpu.ids"}}}});
    discovered_ = (*collector_->discover()).devices.at(0);
    return *collector_;
  }
  void attach() {
    ASSERT_TRUE(device_->attach(discovered_));
    values_.assign(device_->series().size(), 0);
    statuses_.assign(device_->series().size(), ReadStatus::unsupported);
  }
  /// The list after a normal pass at this second, 10 s after the previous pass.
  std::pair<PassOutcome, Processes> listed(int at) {
    SampleSink sink(values_, statuses_);
    const Pass pass{Tier::normal, seconds(at), seconds(10)};
    const PassOutcome outcome = device_->sample(pass, sink);
    Processes list;
    EXPECT_EQ(lists_->processes(pass, list), ReadStatus::ok);
    return {outcome, list};
  }

  DeviceInfo discovered_;
  std::unique_ptr<Device> device_;
  ListsProcesses* lists_ = nullptr;
  std::vector<double> values_;
  std::vector<ReadStatus> statuses_;
};

TEST_F(AmdDeviceProcesses, AreAskedOfTheCardsOwnNode) {
  write("power/runtime_status", "active\n");
  attach();
  EXPECT_EQ(lists_->processes_tier(), Tier::normal);
  EXPECT_EQ(listed(10), std::pair(PassOutcome::complete, Processes{{4711, kGiB, 5}}));
}

TEST_F(AmdDeviceProcesses, NeverWakeASleepingCard) {
  write("power/control", "auto\n");
  write("power/autosuspend_delay_ms", "5000\n");
  write("power/runtime_status", "suspended\n");
  attach();
  EXPECT_EQ(listed(10), std::pair(PassOutcome::asleep, Processes{{4711, kGiB, {}}}));
  write("power/runtime_status", "active\n");
  EXPECT_EQ(listed(20), std::pair(PassOutcome::complete, Processes{{4711, kGiB, 5}}));
}

TEST_F(AmdDeviceProcesses, OutliveARelease) {
  write("power/runtime_status", "active\n");
  attach();
  device_->release();
  Processes list;
  EXPECT_EQ(lists_->processes({Tier::normal, seconds(10), seconds(10)}, list), ReadStatus::unsupported);
  attach();
  EXPECT_EQ(listed(20).second, (Processes{{4711, kGiB, 5}}));
}

}  // namespace
}  // namespace gpumeter::amd
