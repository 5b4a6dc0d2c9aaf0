#include "collectors/sources/fdinfo/client.hpp"

#include <gtest/gtest.h>

namespace gpumeter::fdinfo {
namespace {

constexpr double kKiB = 1024;

TEST(FdinfoClient, ARegionCountsByItsResidentSizeOnce) {
  const ClientMemory memory = memory_of(parse(
      "drm-driver: amdgpu\ndrm-total-vram: 100 KiB\ndrm-shared-vram: 10 KiB\ndrm-resident-vram: 80 KiB\n"
      "drm-memory-vram: 80 KiB\ndrm-memory-gtt: 7 KiB\ndrm-total-gtt: 9 KiB\ndrm-shared-gtt: 8 KiB\n"
      "drm-memory-cpu: 1 KiB\ndrm-resident-doorbell: 50 KiB\ndrm-resident-gds: 50\n"));
  EXPECT_EQ(memory.device, 80 * kKiB);
  EXPECT_EQ(memory.system, 8 * kKiB);
  EXPECT_EQ(memory.shared_device, 10 * kKiB);
  EXPECT_EQ(memory.shared_system, 7 * kKiB);
}

TEST(FdinfoClient, RegionsOfIntel) {
  const ClientMemory memory = memory_of(parse(
      "drm-driver: i915\ndrm-resident-system0: 1\ndrm-resident-stolen-system0: 2\ndrm-resident-local0: 30\n"
      "drm-resident-stolen-local0: 40\n"));
  EXPECT_EQ(memory.device, 70);
  EXPECT_EQ(memory.system, 3);
  const ClientMemory tiles =
      memory_of(parse("drm-driver: xe\ndrm-resident-system: 1\ndrm-resident-gtt: 2\ndrm-resident-vram0: 30\n"
                      "drm-resident-vram1: 40\ndrm-resident-stolen: 5\n"));
  EXPECT_EQ(tiles.device, 70);
  EXPECT_EQ(tiles.system, 3);
}

TEST(FdinfoClient, ADriverWithoutResidentSizesCountsByTotals) {
  const ClientMemory memory =
      memory_of(parse("drm-driver: v3d\ndrm-total-memory: 15168 KiB\ndrm-shared-memory: 9336 KiB\n"));
  EXPECT_EQ(memory.system, 15168 * kKiB);
  EXPECT_EQ(memory.shared_system, 9336 * kKiB);
  EXPECT_EQ(memory.device, std::nullopt);
}

TEST(FdinfoClient, PanthorsOwnBuffersAreTheClients) {
  const ClientMemory memory =
      memory_of(parse("drm-driver: panthor\npanthor-resident-memory: 10 KiB\ndrm-resident-memory: 5 KiB\n"));
  EXPECT_EQ(memory.system, 15 * kKiB);
}

TEST(FdinfoClient, NoKeysAreNoMemory) {
  const ClientMemory memory = memory_of(parse("drm-driver: i915\ndrm-engine-render: 5 ns\n"));
  EXPECT_EQ(memory.device, std::nullopt);
  EXPECT_EQ(memory.system, std::nullopt);
}

TEST(FdinfoClient, EnginesCountByTimeAndOtherwiseByCycles) {
  const std::vector<EngineCount> engines = engines_of(parse(
      "drm-driver: xe\ndrm-cycles-rcs: 5\ndrm-total-cycles-rcs: 50\ndrm-cycles-vcs: 6\n"
      "drm-total-cycles-vcs: 60\ndrm-engine-capacity-vcs: 2\ndrm-cycles-other: 1\ndrm-total-cycles-other: 2\n"
      "drm-cycles-bcs: 3\n"));
  ASSERT_EQ(engines.size(), 2u);
  EXPECT_EQ(kEngineNames[engines[0].name].engine, EngineClass::graphics);
  EXPECT_TRUE(engines[0].in_cycles);
  EXPECT_EQ(engines[0].count, 5u);
  EXPECT_EQ(engines[0].total_cycles, 50u);
  EXPECT_EQ(kEngineNames[engines[1].name].engine, EngineClass::video);
  EXPECT_EQ(engines[1].capacity, 2);

  const std::vector<EngineCount> times =
      engines_of(parse("drm-driver: panfrost\ndrm-engine-fragment: 9 ns\ndrm-cycles-fragment: 3\n"));
  ASSERT_EQ(times.size(), 1u);
  EXPECT_FALSE(times[0].in_cycles);
  EXPECT_EQ(times[0].count, 9u);
  EXPECT_TRUE(
      engines_of(parse("drm-driver: i915\ndrm-engine-rcs: 9 ns\n")).empty());  // a name of another driver
}

}  // namespace
}  // namespace gpumeter::fdinfo
