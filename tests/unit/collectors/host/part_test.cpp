#include "collectors/host/part.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

// Which GPUs a link joins: directly, by a switch that both reach, or not at all.

namespace gpumeter {
namespace {

class HostTest : public testing::Test {
 protected:
  void add(const std::string& address, std::vector<std::string> linked_to) {
    const std::string folder = "devices/pci0000:" + address.substr(5, 2) + "/" + address;
    sysfs_.write(folder + "/uevent", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\n");
    sysfs_.write(folder + "/numa_node", "0\n");
    sysfs_.write("bus/pci/devices/" + address, "-> ../../../" + folder);
    DeviceInfo info;
    info.uuid = info.pci_address = address;
    info.linked_to = std::move(linked_to);
    devices_.push_back({"nvidia", static_cast<unsigned>(devices_.size()), info, ""});
  }

  /// The paths between the first GPU and the second, and back: "link link".
  std::string paths() {
    Store store;
    Machine machine;
    machine.read_devices.publish(devices_);
    const FakeClock clock;
    Log log(clock, {});
    const Paths paths{sysfs_.path(), sysfs_.path()};
    const auto part = host::kPart.open({"host", store, machine, clock, log, paths});
    part->turn(Nanoseconds(1));
    const std::string page = walked(store);
    return path(page, 0, 1) + " " + path(page, 1, 0);
  }

  std::string path(const std::string& page, std::size_t from, std::size_t to) const {
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      const bool is_it = line.find("uuid=\"" + devices_[from].info.uuid) != std::string::npos &&
                         line.find("peer=\"" + devices_[to].info.uuid) != std::string::npos;
      const std::size_t at = line.find("path=\"") + 6;
      if (is_it) return line.substr(at, line.find('"', at) - at);
    }
    return "none";
  }

  Tree sysfs_{{}};
  std::vector<DeviceIdentity> devices_;
};

TEST_F(HostTest, ASwitchJoinsTheGpusThatReachIt) {
  add("0000:18:00.0", {"switch:0000:85:00.0", "switch:0000:86:00.0"});
  add("0000:2a:00.0", {"switch:0000:86:00.0"});
  EXPECT_EQ(paths(), "link link");
}

TEST_F(HostTest, OtherSwitchesDoNot) {
  add("0000:18:00.0", {"switch:0000:85:00.0"});
  add("0000:2a:00.0", {"switch:0000:86:00.0"});
  EXPECT_EQ(paths(), "node node");
}

TEST_F(HostTest, ALinkOfOneSideLeadsBothWays) {
  add("0000:18:00.0", {"0000:2a:00.0"});
  add("0000:2a:00.0", {});
  EXPECT_EQ(paths(), "link link");
}

TEST_F(HostTest, SwitchesBeyondTheBusAreOneDomain) {
  add("0000:18:00.0", {"switch:"});
  add("0000:2a:00.0", {"switch:"});
  EXPECT_EQ(paths(), "link link");
}

TEST_F(HostTest, TwoGpusWithLinksToAThirdAreNotLinked) {
  add("0000:18:00.0", {"0000:3a:00.0"});
  add("0000:2a:00.0", {"0000:3a:00.0"});
  add("0000:3a:00.0", {});
  EXPECT_EQ(paths(), "node node");
}

}  // namespace
}  // namespace gpumeter

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
