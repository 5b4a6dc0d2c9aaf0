#include "collectors/attribution/process_facts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/fakes/fake_procfs.hpp"

namespace gpumeter::workloads {
namespace {

TEST(ProcessFacts, AreTheKernelsWord) {
  EXPECT_EQ(real_uid_of("/proc", getpid()), getuid());
  EXPECT_FALSE(name_of("/proc", getpid()).empty());
}

TEST(ProcessFacts, ANameMayHaveAnyBytes) {
  FakeProcfs procfs;
  procfs.add(7, "/a", {.name = "tr\xff\x1b\"in"});
  EXPECT_EQ(name_of(procfs.path(), 7), "tr\uFFFD\uFFFD\"in");
  EXPECT_EQ(name_of(procfs.path(), 8), "");
  EXPECT_EQ(real_uid_of(procfs.path(), 8), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::workloads
