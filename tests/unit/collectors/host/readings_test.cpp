#include "collectors/host/readings.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::host {
namespace {

TEST(ParsePressure, TakesTheTotals) {
  EXPECT_EQ(parse_pressure("some avg10=0.12 avg60=3.40 avg300=0.00 total=2500000\n"
                           "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n"),
            (Pressure{2.5, 0.5}));
}

TEST(ParsePressure, AValueThatIsNotThereIsAbsent) {
  EXPECT_EQ(parse_pressure(""), Pressure());
  EXPECT_EQ(parse_pressure("some avg10=0.12 total=1000000"), (Pressure{1, std::nullopt}));
  EXPECT_EQ(parse_pressure("some total=-1\nfull total=\n"), Pressure());
  EXPECT_EQ(parse_pressure("other total=7\n"), Pressure());
}

TEST(ReadPressure, IsAbsentWithoutPsi) {
  EXPECT_EQ(read_pressure(make_tree({}).path(), "memory"), Pressure());
}

TEST(ReadPressure, OfThisKernelGrowsOnly) {
  const Pressure before = read_pressure("/proc", "memory");
  if (!before.some) GTEST_SKIP() << "this kernel has no /proc/pressure/memory";
  const Pressure after = read_pressure("/proc", "memory");
  EXPECT_GE(after.some, before.some);
  EXPECT_GE(after.full, before.full);
}

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
}  // namespace gpumeter::host
