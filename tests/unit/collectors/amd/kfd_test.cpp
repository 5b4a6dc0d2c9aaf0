#include "collectors/amd/kfd.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/amd_card_test.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

constexpr std::string_view kProcessors = "cpu_cores_count 16\nsimd_count 0\nsimd_per_cu 0\nlocation_id 0\n";

std::string partition(int function, int minor) {
  return "simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\ndevice_id 29857\nlocation_id " +
         std::to_string(1280 + function) + "\ndomain 0\ndrm_render_minor " + std::to_string(minor) +
         "\nmax_engine_clk_fcompute 2100\nunique_id 16404946649897475633\n";
}

/// A CPU node, and a card at 0000:05:00.0 that is divided into two.
Tree divided() {
  const std::string nodes = "class/kfd/kfd/topology/nodes/";
  const std::string first = partition(0, 128);
  const std::string second = partition(1, 129);
  constexpr std::string_view kMemory =
      "heap_type 1\nsize_in_bytes 25769803776\nwidth 8192\nmem_clk_max 1300\n";
  return Tree({{nodes + "0/properties", kProcessors},
               {nodes + "1/properties", first},
               {nodes + "1/mem_banks/0/properties", kMemory},
               {nodes + "2/properties", second},
               {nodes + "2/mem_banks/0/properties", kMemory}});
}

KfdNode mi210() {
  return {.address = {0, 0x63, 0, 0},
          .unique_id = 1,
          .device = 29711,
          .render_minor = 128,
          .target = 90010,
          .compute_units = 104,
          .clock_megahertz = 1700,
          .memory_bits = 4096,
          .memory_clock_megahertz = 1600};
}

KfdNode mi300x_part() {
  return {.number = 1,
          .address = {0, 5, 0, 0},
          .unique_id = 16404946649897475633U,
          .device = 29857,
          .render_minor = 128,
          .target = 90402,
          .compute_units = 38,
          .clock_megahertz = 2100,
          .memory_bytes = 25769803776,
          .memory_bits = 8192,
          .memory_clock_megahertz = 1300};
}

constexpr std::string_view kXgmi = "type 11\nnode_from 1\nnode_to 3\nweight 15\n";

// Node 0 is a processor, 1 and 2 are parts of one card, 3 is another card.
TEST(KfdTopologyTest, LinksLeadBetweenCards) {
  const Tree tree = divided();
  const std::string nodes = "class/kfd/kfd/topology/nodes/";
  tree.write(nodes + "3/properties",
             "simd_count 416\nsimd_per_cu 4\nlocation_id 25344\ndomain 1\nunique_id 7\ndevice_id 29711\n");
  tree.write(nodes + "1/io_links/0/properties", "type 2\nnode_from 1\nnode_to 0\n");
  tree.write(nodes + "1/io_links/1/properties", "type 11\nnode_from 1\nnode_to 2\n");
  tree.write(nodes + "1/io_links/2/properties", kXgmi);
  tree.write(nodes + "1/io_links/3/properties", "type 11\nnode_from 1\nnode_to 9\n");
  tree.write(nodes + "2/io_links/0/properties", "type 11\nnode_from 2\nnode_to 3\n");
  tree.write(nodes + "3/io_links/0/properties", "type 11\nnode_from 3\nnode_to 2\n");
  const pci::Address first = {0, 5, 0, 0};
  const pci::Address second = {1, 0x63, 0, 0};
  EXPECT_EQ(kfd_links(tree.path(), kfd_nodes(tree.path())),
            (std::vector<KfdLink>{{first, second}, {second, first}}));
}

TEST(KfdTopologyTest, NodesOfGpus) {
  const Tree tree = divided();
  KfdNode second = mi300x_part();
  second.number = 2;
  second.address.function = 1;
  second.partition = 1;
  second.render_minor = 129;
  const std::vector<KfdNode> expected = {mi300x_part(), second};
  EXPECT_EQ(kfd_nodes(tree.path()), expected);
  EXPECT_EQ(kfd_nodes(tree / "nowhere"), std::vector<KfdNode>());
}

TEST(KfdTopologyTest, ACardIsAllItsPartitions) {
  const Tree tree = divided();
  KfdNode whole = mi300x_part();
  whole.compute_units = 76;
  whole.memory_bytes *= 2;
  EXPECT_EQ(kfd_whole(kfd_nodes_of(kfd_nodes(tree.path()), {{0, 5, 0, 0}, 29857, {}})), whole);
}

TEST(KfdTopologyTest, NewerKernelsNumberPartitionsInTheHighestBits) {
  std::string third = partition(0, 130);
  third.replace(third.find("1280"), 4, std::to_string(2U << 28 | 1280U));
  const Tree tree({{"class/kfd/kfd/topology/nodes/1/properties", third}});
  const std::vector<KfdNode> nodes = kfd_nodes(tree.path());
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].partition, 2U);
  EXPECT_EQ(nodes[0].address, (pci::Address{0, 5, 0, 0}));
}

TEST(KfdTopologyTest, CardsWithoutAUniqueIdAreNotOneCard) {
  KfdNode first = mi210();
  KfdNode second = mi210();
  first.unique_id = second.unique_id = 0;
  second.address.bus = 0x64;
  EXPECT_EQ(kfd_whole(kfd_nodes_of({first, second}, {first.address, 29711, {}})), first);
}

TEST(KfdTopologyTest, WithoutItsAddressByRenderNodeIfTheChipIsTheSame) {
  const KfdNode node = mi210();
  EXPECT_EQ(kfd_whole(kfd_nodes_of({node}, {{0, 9, 0, 0}, 29711, 128})), node);
  EXPECT_EQ(kfd_whole(kfd_nodes_of({node}, {{0, 9, 0, 0}, 29711, 129})), std::nullopt);
  EXPECT_EQ(kfd_whole(kfd_nodes_of({node}, {{0, 9, 0, 0}, 0x73bf, 128})), std::nullopt);
  EXPECT_EQ(kfd_whole(kfd_nodes_of({node}, {{0, 9, 0, 0}, 29711, {}})), std::nullopt);
}

TEST(KfdTopologyTest, Architectures) {
  EXPECT_EQ(architecture_name(90402), "gfx942");
  EXPECT_EQ(architecture_name(90010), "gfx90a");
  EXPECT_EQ(architecture_name(110003), "gfx1103");
  EXPECT_EQ(architecture_name(110500), "gfx1150");
  EXPECT_EQ(architecture_name(0), "");
}

TEST(KfdPeaksTest, AreThoseOfTheDataSheet) {
  EXPECT_NEAR(*peak_of(mi210(), Peak::fp32), 45.3e12, 0.05e12);
  EXPECT_NEAR(*peak_of(mi210(), Peak::fp16), 181.0e12, 0.05e12);
  EXPECT_NEAR(*peak_of(mi210(), Peak::bf16), 181.0e12, 0.05e12);
  EXPECT_NEAR(*peak_of(mi210(), Peak::memory), 1.6384e12, 1);
  KfdNode mi300x = mi300x_part();
  mi300x.compute_units = 304;
  EXPECT_NEAR(*peak_of(mi300x, Peak::fp32), 163.4e12, 0.05e12);
  EXPECT_NEAR(*peak_of(mi300x, Peak::fp16), 1307.4e12, 0.05e12);
  EXPECT_NEAR(*peak_of(mi300x, Peak::memory), 5.325e12, 0.001e12);
}

TEST(KfdPeaksTest, WhatIsNotPublishedOrNotToldIsAbsent) {
  const KfdNode apu = {.device = 5567,
                       .target = 110003,
                       .compute_units = 12,
                       .clock_megahertz = 2700,
                       .memory_bits = 128,
                       .memory_clock_megahertz = 800};
  EXPECT_NEAR(*peak_of(apu, Peak::fp32), 8.29e12, 0.01e12);
  EXPECT_EQ(peak_of(apu, Peak::bf16), std::nullopt);
  EXPECT_EQ(peak_of(apu, Peak::memory), std::nullopt);  // LPDDR5 or DDR5: not reported
  KfdNode unknown = mi210();
  unknown.target = 0;
  EXPECT_EQ(peak_of(unknown, Peak::fp32), std::nullopt);
  KfdNode clockless = mi210();
  clockless.clock_megahertz = clockless.memory_clock_megahertz = 0;
  EXPECT_EQ(peak_of(clockless, Peak::fp32), std::nullopt);
  EXPECT_EQ(peak_of(clockless, Peak::memory), std::nullopt);
}

using Processes = std::map<int, std::vector<KfdUse>>;

Tree two_processes() {
  return Tree({{"class/kfd/kfd/proc/4711/pasid", "32770\n"},
               {"class/kfd/kfd/proc/4711/vram_52321", "1073741824\n"},
               {"class/kfd/kfd/proc/4711/vram_7", "0\n"},
               {"class/kfd/kfd/proc/4711/sdma_52321", "123\n"},
               {"class/kfd/kfd/proc/4711/stats_52321/cu_occupancy", "38\n"},
               {"class/kfd/kfd/proc/4711/stats_52321/evicted_ms", "0\n"},
               {"class/kfd/kfd/proc/4711/counters_52321/faults", "0\n"},
               {"class/kfd/kfd/proc/4711/queues/0/type", "1\n"},
               {"class/kfd/kfd/proc/99/vram_7", "4096\n"}});
}

TEST(KfdProcessesTest, MemoryAndOccupationByProcessAndGpu) {
  const Tree tree = two_processes();
  const Processes expected = {{99, {{7, 4096, {}}}}, {4711, {{7, 0, {}}, {52321, 1073741824, 38}}}};
  EXPECT_EQ(kfd_processes(tree.path(), KfdDetail::occupation), expected);
}

TEST(KfdProcessesTest, MemoryAloneAsksNoHardware) {
  const Tree tree = two_processes();
  const Processes expected = {{99, {{7, 4096, {}}}}, {4711, {{7, 0, {}}, {52321, 1073741824, {}}}}};
  EXPECT_EQ(kfd_processes(tree.path(), KfdDetail::memory), expected);
}

TEST(KfdProcessesTest, OfSomeGpusNoOtherIsAsked) {
  const Tree tree = two_processes();
  constexpr std::uint32_t kOne[] = {52321};
  EXPECT_EQ(kfd_processes(tree.path(), KfdDetail::occupation, kOne),
            (Processes{{4711, {{52321, 1073741824, 38}}}}));
}

TEST(KfdProcessesTest, WhatEndsWhileItIsReadIsLeftOut) {
  const Tree tree({{"class/kfd/kfd/proc/5/vram_7", ""},  // the kernel returns an error, or nothing
                   {"class/kfd/kfd/proc/5/stats_7/cu_occupancy", "\n"},
                   {"class/kfd/kfd/proc/6/pasid", "1\n"},
                   {"class/kfd/kfd/proc/8/vram_x", "1\n"},
                   {"class/kfd/kfd/proc/self/vram_7", "1\n"}});
  EXPECT_EQ(kfd_processes(tree.path(), KfdDetail::occupation), Processes());
}

TEST(KfdProcessesTest, NoComputeDriverNoProcesses) {
  EXPECT_EQ(kfd_processes("/nowhere/at/all", KfdDetail::memory), Processes());
}

using std::chrono::seconds;
using Listed = std::vector<DeviceProcess>;

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
  Listed listed(seconds elapsed = seconds(10)) {
    Listed list;
    EXPECT_EQ(card_.read({Tier::normal, seconds(100), elapsed}, list), ReadStatus::ok);
    return list;
  }
  ReadStatus refused() {
    Listed list;
    const ReadStatus status = card_.read({Tier::normal, seconds(100), seconds(10)}, list);
    EXPECT_EQ(list, Listed());
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
  EXPECT_EQ(listed(), (Listed{{10, kGiB, 2.5}, {20, 4096, 0}}));
  EXPECT_EQ(listed(seconds(0)), (Listed{{10, kGiB, 0}, {20, 4096, 0}}));  // nothing before the first read
}

TEST_F(CardProcessesTest, OneThatUsesOtherCardsIsNotHere) {
  write("10/vram_7", "0\n");
  write("10/stats_7/cu_occupancy", "0\n");
  write("10/vram_8", "4096\n");
  write("10/stats_8/cu_occupancy", "104\n");
  write("20/vram_8", "4096\n");
  open({node(7, 104)});
  EXPECT_EQ(listed(), Listed());
}

TEST_F(CardProcessesTest, OneAtWorkWithoutMemoryIsHere) {
  write("10/vram_7", "0\n");
  write("10/stats_7/cu_occupancy", "52\n");
  open({node(7, 104)});
  EXPECT_EQ(listed(), (Listed{{10, 0, 5}}));
}

TEST_F(CardProcessesTest, MoreComputeUnitsThanThereAreAreAll) {
  write("10/vram_7", "1\n");
  write("10/stats_7/cu_occupancy", "300\n");
  open({node(7, 104)});
  EXPECT_EQ(listed(), (Listed{{10, 1, 10}}));
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
  EXPECT_EQ(listed(), (Listed{{10, 1500, 5}, {20, 30, 2.5}}));
}

TEST_F(CardProcessesTest, AChipThatDoesNotTellHasNoBusyTime) {
  write("10/vram_7", "1000\n");
  write("10/stats_7/evicted_ms", "0\n");
  open({node(7, 80)});
  EXPECT_EQ(listed(), (Listed{{10, 1000, {}}}));
}

TEST_F(CardProcessesTest, ACardThatMayNotBeReadIsAskedForNothing) {
  write("10/vram_7", "1000\n");
  write("10/stats_7/cu_occupancy", "38\n");
  open({node(7, 38)});
  card_.allow_hardware(false);
  EXPECT_EQ(listed(), (Listed{{10, 1000, {}}}));
}

TEST_F(CardProcessesTest, NobodyIsNotTheSameAsNotTold) {
  open({node(7, 38)});
  EXPECT_EQ(refused(), ReadStatus::unsupported);  // no compute driver
  write(".keep", "");
  EXPECT_EQ(listed(), Listed());
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
  std::pair<PassOutcome, Listed> listed(int at) {
    SampleSink sink(values_, statuses_);
    const Pass pass{Tier::normal, seconds(at), seconds(10)};
    const PassOutcome outcome = device_->sample(pass, sink);
    Listed list;
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
  EXPECT_EQ(listed(10), std::pair(PassOutcome::complete, Listed{{4711, kGiB, 5}}));
}

TEST_F(AmdDeviceProcesses, NeverWakeASleepingCard) {
  write("power/control", "auto\n");
  write("power/autosuspend_delay_ms", "5000\n");
  write("power/runtime_status", "suspended\n");
  attach();
  EXPECT_EQ(listed(10), std::pair(PassOutcome::asleep, Listed{{4711, kGiB, {}}}));
  write("power/runtime_status", "active\n");
  EXPECT_EQ(listed(20), std::pair(PassOutcome::complete, Listed{{4711, kGiB, 5}}));
}

TEST_F(AmdDeviceProcesses, OutliveARelease) {
  write("power/runtime_status", "active\n");
  attach();
  device_->release();
  Listed list;
  EXPECT_EQ(lists_->processes({Tier::normal, seconds(10), seconds(10)}, list), ReadStatus::unsupported);
  attach();
  EXPECT_EQ(listed(20).second, (Listed{{4711, kGiB, 5}}));
}

}  // namespace
}  // namespace gpumeter::amd
