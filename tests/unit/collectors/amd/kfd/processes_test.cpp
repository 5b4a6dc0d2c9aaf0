#include "collectors/amd/kfd/processes.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

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

}  // namespace
}  // namespace gpumeter::amd
