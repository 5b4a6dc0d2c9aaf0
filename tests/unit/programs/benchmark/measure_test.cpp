#include "programs/benchmark/measure.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::benchmark {
namespace {

TEST(Caches, TheBufferIsLargerThanTheLargest) {
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  const Tree tree({{"devices/system/cpu/cpu0/cache/index0/size", "32K\n"},
                   {"devices/system/cpu/cpu0/cache/index3/size", "266240K\n"},
                   {"devices/system/cpu/cpu1/cache/index3/size", "x\n"},
                   {"devices/system/cpu/cpufreq/boost", "1\n"}});
  EXPECT_EQ(size_above_caches(tree.path()), 325 * kMiB);
  EXPECT_EQ(size_above_caches(Tree({}).path()), 64 * kMiB);
  EXPECT_EQ(size_above_caches(Tree({{"devices/system/cpu/cpu0/cache/index3/size", "8192K"}}).path()),
            64 * kMiB);
}

}  // namespace
}  // namespace gpumeter::benchmark
