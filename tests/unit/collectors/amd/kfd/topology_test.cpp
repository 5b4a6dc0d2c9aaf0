#include "collectors/amd/kfd/topology.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace gpumeter::amd
