#include "collectors/attribution/cgroup/cpu_time.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::cgroup {
namespace {

TEST(ParseCpuStat, TakesTheUsage) {
  EXPECT_EQ(parse_cpu_stat("usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n"), 1.5);
  EXPECT_EQ(parse_cpu_stat("user_usec 1\nusage_usec 0"), 0);
}

TEST(ParseCpuStat, AnythingElseIsAbsent) {
  for (const char* const text : {"", "usage_usec", "usage_usec -1\n", "usage_usec x\n", "usage 7\n"}) {
    EXPECT_EQ(parse_cpu_stat(text), std::nullopt) << text;
  }
}

TEST(CpuSeconds, AreThoseOfTheHierarchyThatCounts) {
  const Tree tree = make_tree({{"fs/cgroup/a.slice/b.service/cpu.stat", "usage_usec 2000000\n"},
                               {"fs/cgroup/unified/hybrid.service/cpu.stat", "usage_usec 3000000\n"},
                               {"fs/cgroup/cpuacct/slurm/uid_1/job_2/cpuacct.usage", "4000000000\n"},
                               {"fs/cgroup/cpu,cpuacct/docker/x/cpuacct.usage", "5000000000\n"}});
  EXPECT_EQ(cpu_seconds(tree.path(), "/a.slice/b.service"), 2);
  EXPECT_EQ(cpu_seconds(tree.path(), "/hybrid.service"), 3);
  EXPECT_EQ(cpu_seconds(tree.path(), "/slurm/uid_1/job_2"), 4);
  EXPECT_EQ(cpu_seconds(tree.path(), "/docker/x"), 5);
}

TEST(CpuSeconds, TheRootAndPathsOutsideTheNamespaceHaveNone) {
  const Tree tree = make_tree({{"fs/cgroup/cpu.stat", "usage_usec 2000000\n"},
                               {"fs/cpu.stat", "usage_usec 2000000\n"},
                               {"fs/cgroup/a/cpu.stat", "usage_usec 2000000\n"}});
  for (const char* const group : {"", "/", "a", "/..", "/../a", "/a/../a", "/gone"}) {
    EXPECT_EQ(cpu_seconds(tree.path(), group), std::nullopt) << group;
  }
}

}  // namespace
}  // namespace gpumeter::cgroup
