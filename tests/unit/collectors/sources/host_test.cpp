#include "collectors/sources/host.hpp"

#include <gtest/gtest.h>

#include <string>

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

TEST(HostMemory, IsReadOnceAPassFromTheOpenFile) {
  const Tree tree({});
  tree.write("meminfo", std::string(kText));
  HostMemoryFile file(tree.path());
  ASSERT_EQ(file.read().status, ReadStatus::ok);
  tree.write("meminfo", "MemTotal:  10 kB\nMemAvailable:  4 kB\n");
  EXPECT_NE(file.read().memory.available, 4096);
  file.begin_pass();
  EXPECT_EQ(file.read().memory.available, 4096);
}

TEST(HostMemory, AMissingFileIsUnsupported) {
  const Tree tree({});
  EXPECT_EQ(HostMemoryFile(tree.path()).read().status, ReadStatus::unsupported);
}

}  // namespace
}  // namespace gpumeter

namespace gpumeter::pci {
namespace {

constexpr std::string_view kGpu = "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\n";
constexpr std::string_view kAmdGpu = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n";
constexpr std::string_view kAmdSwitch = "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=1002:1478\n";
constexpr std::string_view kSwitch = "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=11F8:4000\n";
constexpr std::string_view kRootPort = "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=8086:352A\n";

const std::string kRoot = "devices/pci0000:15/0000:15:01.0/";  // a root port
const std::string kUp = kRoot + "0000:16:00.0/";               // a switch's upstream port

/// Two GPUs below one switch, a third one switch further down, an AMD card with its own switch below the
/// first, one at another root port, and one in each of two other NUMA nodes' host bridges.
class TopologyTest : public testing::Test {
 protected:
  TopologyTest() {
    tree_.write(kRoot + "uevent", kRootPort);
    for (const char* const bridge :
         {"", "0000:17:00.0/", "0000:17:01.0/", "0000:17:02.0/", "0000:17:02.0/0000:1a:00.0/",
          "0000:17:02.0/0000:1a:00.0/0000:1b:00.0/", "0000:17:03.0/"}) {
      tree_.write(kUp + bridge + "uevent", kSwitch);
    }
    for (const char* const bridge : {"0000:17:03.0/0000:1d:00.0/", "0000:17:03.0/0000:1d:00.0/0000:1e:00.0/"})
      tree_.write(kUp + bridge + "uevent", kAmdSwitch);
    tree_.write("devices/pci0000:15/0000:15:02.0/uevent", kRootPort);
    add(kUp + "0000:17:00.0/0000:18:00.0", kGpu, "0\n");
    add(kUp + "0000:17:01.0/0000:19:00.0", kGpu, "0\n");
    add(kUp + "0000:17:02.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0", kGpu, "0\n");
    add(kUp + "0000:17:03.0/0000:1d:00.0/0000:1e:00.0/0000:1f:00.0", kAmdGpu, "0\n");
    add("devices/pci0000:15/0000:15:02.0/0000:20:00.0", kGpu, "0\n");
    add("devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0", kGpu, "0\n");
    add("devices/pci0000:97/0000:97:01.0/0000:98:00.0", kGpu, "1\n");
    add("devices/pci000f:00/000f:00:00.0/000f:01:00.0", kGpu, "-1\n");
    add("devices/pci0010:00/0010:00:00.0/0010:01:00.0", kGpu, "-1\n");
  }

  void add(const std::string& folder, std::string_view uevent, std::string_view numa_node) {
    tree_.write(folder + "/uevent", uevent);
    tree_.write(folder + "/numa_node", numa_node);
    const std::string address = folder.substr(folder.rfind('/') + 1);
    tree_.write("bus/pci/devices/" + address, "-> ../../../" + folder);
  }

  std::string path(const std::string& one, const std::string& other) const {
    const Place from = place_of(tree_.path(), one).value();
    const Place to = place_of(tree_.path(), other).value();
    EXPECT_EQ(path_between(from, to), path_between(to, from));
    return std::string(to_string(path_between(from, to)));
  }

  Tree tree_{{}};
};

TEST_F(TopologyTest, IsThatOfTheNearestCommonBridge) {
  EXPECT_EQ(path("0000:18:00.0", "0000:19:00.0"), "pix");
  EXPECT_EQ(path("0000:18:00.0", "0000:1c:00.0"), "pxb");
  EXPECT_EQ(path("0000:18:00.0", "0000:20:00.0"), "phb");
  EXPECT_EQ(path("0000:18:00.0", "0000:3b:00.0"), "node");
  EXPECT_EQ(path("0000:18:00.0", "0000:98:00.0"), "sys");
}

TEST_F(TopologyTest, ACardsOwnSwitchIsPartOfTheCard) {
  EXPECT_EQ(path("0000:18:00.0", "0000:1f:00.0"), "pix");
}

TEST_F(TopologyTest, WithoutNumaNodesAllHostBridgesAreOfOneNode) {
  EXPECT_EQ(path("000f:01:00.0", "0010:01:00.0"), "node");
  EXPECT_EQ(path("000f:01:00.0", "0000:98:00.0"), "sys");
}

TEST_F(TopologyTest, ADeviceThatIsNotOnTheBusHasNoPlace) {
  EXPECT_EQ(place_of(tree_.path(), "0000:ff:00.0"), std::nullopt);
  EXPECT_EQ(place_of(tree_.path(), ""), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::pci
