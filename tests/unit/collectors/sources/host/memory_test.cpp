#include "collectors/sources/host/memory.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kText =
    "MemTotal:       125496612 kB\n"
    "MemFree:        80112004 kB\n"
    "MemAvailable:   98765432 kB\n"
    "Buffers:          512000 kB\n";

TEST(HostMemory, ReadsTotalAndAvailableInBytes) {
  const std::optional<HostMemory> memory = parse_meminfo(kText);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total, 125496612.0 * 1024);
  EXPECT_EQ(memory->available, 98765432.0 * 1024);
}

TEST(HostMemory, IsUnknownIfALineIsMissingCutOrImpossible) {
  EXPECT_FALSE(parse_meminfo(""));
  EXPECT_FALSE(parse_meminfo("MemTotal:       125496612 kB\nMemFree: 1 kB\n"));  // before Linux 3.14
  EXPECT_FALSE(parse_meminfo("MemTotal:       125496612 kB\nMemAvailable:   987654"));
  EXPECT_FALSE(parse_meminfo("MemTotal:  10 kB\nMemAvailable:  11 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal:  10 MB\nMemAvailable:  1 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal:  x kB\nMemAvailable:  1 kB\n"));
  EXPECT_FALSE(parse_meminfo("MemTotal:  10 kB\nMemAvailable:  -1 kB\n"));
}

TEST(HostMemory, IsReadAgainFromTheOpenFile) {
  const Tree tree({});
  tree.write("meminfo", std::string(kText));
  const HostMemoryFile file(tree.path());
  ASSERT_EQ(file.read().status, ReadStatus::ok);
  tree.write("meminfo", "MemTotal:  10 kB\nMemAvailable:  4 kB\n");
  EXPECT_EQ(file.read().memory.available, 4096);
}

TEST(HostMemory, AMissingFileIsUnsupported) {
  const Tree tree({});
  EXPECT_EQ(HostMemoryFile(tree.path()).read().status, ReadStatus::unsupported);
}

}  // namespace
}  // namespace gpumeter
