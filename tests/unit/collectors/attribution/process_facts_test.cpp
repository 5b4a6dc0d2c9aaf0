#include "collectors/attribution/process_facts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/fakes/fake_procfs.hpp"

namespace gpumeter::workloads {
namespace {

TEST(ProcessFacts, TheRealUserIsTheFirstOfFour) {
  EXPECT_EQ(real_uid("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n"), 1000U);
  EXPECT_EQ(real_uid("Name:\tx\nUid:\t4294967295\t0\t0\t0\n"), 4294967295U);
  for (const char* bad :
       {"", "Uid:\t5\t", "Name:\tx\nUid:\t", "Name:\tx\nUid:\t5", "Name:\tx\nUid:\t-1\t0\t0\t0\n",
        "Name:\tx\nUid:\t4294967296\t0\t0\t0\n", "Name:\tx\\nUid:\t5\t0\t0\t0\n"}) {
    EXPECT_EQ(real_uid(bad), std::nullopt) << bad;
  }
}

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
