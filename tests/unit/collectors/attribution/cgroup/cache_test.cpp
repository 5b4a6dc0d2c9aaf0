#include "collectors/attribution/cgroup/cache.hpp"

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/fakes/fake_procfs.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::cgroup {
namespace {

std::string stat(int pid, std::string_view name, int start) {
  return std::to_string(pid) + " (" + std::string(name) +
         ") S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 " + std::to_string(start) + " 20 21\n";
}

/// A /proc with init and the files that a test adds.
class Procfs {
 public:
  Procfs() { add(1, 0, "0::/init.scope\n"); }

  void add(int pid, int start, std::string_view cgroup) {
    tree_.write(std::to_string(pid) + "/stat", stat(pid, "train", start));
    tree_.write(std::to_string(pid) + "/cgroup", cgroup);
  }
  const Tree& tree() const { return tree_; }

 private:
  Tree tree_ = make_tree({});
};

TEST(CgroupCache, AttributesAProcess) {
  Procfs procfs;
  procfs.add(7, 100, "0::/system.slice/train.service\n");
  Cache cache(procfs.tree().path());
  EXPECT_EQ(cache.of(7).attribution.workload, "train.service");
  EXPECT_EQ(cache.of(7).attribution.reason, Reason::none);
}

TEST(CgroupCache, KeepsTheLabelsUntilTheGroupIsAnother) {
  Procfs procfs;
  procfs.add(7, 100, "0::/system.slice/slurmd-of-this-node.service\n");  // exceeds the internal buffer
  Cache cache(procfs.tree().path());
  const char* const made = cache.of(7).attribution.workload.data();
  EXPECT_EQ(cache.of(7).attribution.workload.data(), made);
  procfs.add(7, 100, "0::/system.slice/slurmstepd.scope/job_55/step_0/user/task_0\n");
  EXPECT_EQ(cache.of(7).attribution.kind, Kind::slurm_job);
  EXPECT_EQ(cache.of(7).attribution.workload, "55");
  EXPECT_EQ(cache.size(), 1U);
}

TEST(CgroupCache, APidThatIsUsedAgainIsAnotherProcess) {
  Procfs procfs;
  procfs.add(7, 100, "0::/system.slice/a.service\n");
  Cache cache(procfs.tree().path());
  EXPECT_EQ(cache.of(7).start_ticks, 100U);
  procfs.add(7, 200, "0::/system.slice/a.service\n");
  EXPECT_EQ(cache.of(7).start_ticks, 200U);
  EXPECT_EQ(cache.of(7).attribution.workload, "a.service");
  procfs.add(7, 300, "0::/system.slice/b.service\n");
  EXPECT_EQ(cache.of(7).start_ticks, 300U);
  EXPECT_EQ(cache.of(7).attribution.workload, "b.service");
}

TEST(CgroupCache, ForgetsWhatAPassDidNotAskFor) {
  Procfs procfs;
  procfs.add(7, 100, "0::/system.slice/a.service\n");
  procfs.add(8, 100, "0::/system.slice/b.service\n");
  Cache cache(procfs.tree().path());
  cache.of(7);
  cache.of(8);
  cache.begin_pass();
  cache.of(8);
  EXPECT_EQ(cache.size(), 2U);
  cache.begin_pass();
  EXPECT_EQ(cache.size(), 1U);
}

TEST(CgroupCache, RemembersSoManyAndAnswersForAll) {
  Procfs procfs;
  for (int pid = 2; pid < 7; ++pid)
    procfs.add(pid, 1, "0::/system.slice/" + std::to_string(pid) + ".service\n");
  Cache cache(procfs.tree().path(), 3);
  for (int pid = 2; pid < 7; ++pid)
    EXPECT_EQ(cache.of(pid).attribution.workload, std::to_string(pid) + ".service");
  EXPECT_EQ(cache.size(), 3U);
  EXPECT_EQ(cache.of(2).attribution.workload, "2.service");
}

TEST(CgroupCache, ATextOfMoreThanAPageIsReadButNotRemembered) {
  Procfs procfs;
  procfs.add(7, 100, "9:devices:/" + std::string(5000, 'x') + "\n0::/system.slice/a.service\n");
  Cache cache(procfs.tree().path());
  EXPECT_EQ(cache.of(7).attribution.workload, "a.service");
  EXPECT_EQ(cache.size(), 0U);
}

TEST(CgroupCache, ATextWithoutEndEndsWithItsLastWholeLine) {
  constexpr std::size_t kLongestText = 65536;
  const std::string whole =
      "0::/system.slice/a.service\n9:devices:/" + std::string(kLongestText - 300, 'x') + "\n";
  std::string cut = "8:freezer:/";
  cut += std::string(kLongestText - whole.size() - cut.size() - 72, '/') + "/docker/" + std::string(64, 'a');
  ASSERT_EQ(whole.size() + cut.size(), kLongestText);
  Procfs procfs;
  procfs.add(7, 100, whole + cut + "aaa\n");  // the cut line alone would be a container
  Cache cache(procfs.tree().path());
  EXPECT_EQ(cache.of(7).attribution.workload, "a.service");
}

TEST(CgroupCache, AProcessThatEndedIsNobodys) {
  Procfs procfs;
  procfs.add(7, 100, "0::/system.slice/a.service\n");
  Cache cache(procfs.tree().path());
  cache.of(7);
  procfs.tree().remove("7");
  EXPECT_EQ(cache.of(7).attribution.kind, Kind::unattributed);
  EXPECT_EQ(cache.of(7).attribution.reason, Reason::gone);
  EXPECT_EQ(cache.of(-1).attribution.reason, Reason::gone);
  procfs.add(7, 200, "0::/system.slice/b.service\n");
  EXPECT_EQ(cache.of(7).attribution.workload, "b.service");
}

TEST(CgroupCache, WhereProcHidesOthersItSaysSo) {
  const Tree tree = make_tree({{"self/stat", stat(9, "reader", 1)}});
  EXPECT_EQ(Cache(tree.path()).of(7).attribution.reason, Reason::hidden);
}

TEST(CgroupCache, WhatIsNoStatIsAFailure) {
  const Tree tree =
      make_tree({{"1/stat", ""}, {"7/stat", "7 (train"}, {"7/cgroup", "0::/a\n"}, {"8/stat/folder", ""}});
  Cache cache(tree.path());
  EXPECT_EQ(cache.of(7).attribution.reason, Reason::failed);
  EXPECT_EQ(cache.of(8).attribution.reason, Reason::failed);
}

/// Opens files as a user without any access. A root process loses its capability to override modes, too.
class AsNobody {
 public:
  AsNobody() : before_(::setfsuid(65534)) {}
  ~AsNobody() { ::setfsuid(static_cast<uid_t>(before_)); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  int before_;
};

TEST(CgroupCache, WhatMayNotBeReadIsDenied) {
  Procfs procfs;
  procfs.add(7, 100, "0::/system.slice/a.service\n");
  ASSERT_EQ(::chmod((procfs.tree() / "7/cgroup").c_str(), 0), 0);
  Cache cache(procfs.tree().path());
  const AsNobody nobody;
  EXPECT_EQ(cache.of(7).attribution.kind, Kind::unattributed);
  EXPECT_EQ(cache.of(7).attribution.reason, Reason::denied);
}

TEST(CgroupCache, ReadsTheRealProc) {
  Cache cache("/proc");
  const Attribution& own = cache.of(::getpid()).attribution;
  EXPECT_TRUE(own.reason == Reason::none || own.reason == Reason::root);
  EXPECT_EQ(own.workload.empty(), own.kind == Kind::unattributed);
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

}  // namespace gpumeter::cgroup
