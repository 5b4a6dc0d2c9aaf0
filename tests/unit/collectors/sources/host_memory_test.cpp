#include "collectors/sources/host_memory.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

TEST(HostMemory, IsTotalAndAvailableInBytes) {
  EXPECT_EQ(parse_host_memory("MemTotal:       16000 kB\nMemFree:  1 kB\nMemAvailable:    4000 kB\n"),
            (HostMemory{16000.0 * 1024, 4000.0 * 1024}));
}

TEST(HostMemory, IsUnknownWithoutBothOrInAnotherUnit) {
  EXPECT_EQ(parse_host_memory(""), std::nullopt);
  EXPECT_EQ(parse_host_memory("MemTotal: 16000 kB\nMemFree: 1 kB\n"), std::nullopt);
  EXPECT_EQ(parse_host_memory("MemTotal: 16 MB\nMemAvailable: 1 MB\n"), std::nullopt);
  EXPECT_EQ(parse_host_memory("MemTotal: 1 kB\nMemAvailable: 2 kB\n"), std::nullopt);
  EXPECT_EQ(parse_host_memory("MemTotal: -1 kB\nMemAvailable: 2 kB\n"), std::nullopt);
}

TEST(HostMemory, FileReportsWhyItHasNoValue) {
  const Tree tree = make_tree({{"meminfo", "MemTotal: x kB\n"}});
  HostMemory memory{1, 1};
  EXPECT_EQ(HostMemoryFile(tree.path()).read(memory), ReadStatus::failed);
  EXPECT_EQ(HostMemoryFile(tree / "none").read(memory), ReadStatus::gone);
  EXPECT_EQ(memory, (HostMemory{1, 1}));
}

}  // namespace
}  // namespace gpumeter
