#include "collectors/amd/collector.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

constexpr std::string_view kIds =
    "# List of AMDGPU IDs\n"
    "#\n"
    "1.0.0\n"
    "731F,\tC0,\tAMD Radeon RX 5700 XT 50th Anniversary\n"
    "731F,\tC1,\tAMD Radeon RX 5700 XT\n"
    "73BF,\tC0,\tAMD Radeon RX 6900 XT\n"
    "15BF,\t00,\tAMD 15BF Graphics, one name\n"
    "15BF,\t01,\tAMD 15BF Graphics, one name\n";

TEST(MarketingName, GoesByDeviceAndRevision) {
  const Tree tree = make_tree({{"amdgpu.ids", kIds}});
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x73bf, 0xc0), "AMD Radeon RX 6900 XT");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x731f, 0xc1), "AMD Radeon RX 5700 XT");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x73bf, 0xc1), "");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x1234, 0xc0), "");
  EXPECT_EQ(marketing_name(tree / "nothing", 0x73bf, 0xc0), "");
}

TEST(MarketingName, WithoutARevisionIsOneThatAllShareOrNone) {
  const Tree tree = make_tree({{"amdgpu.ids", kIds}});
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x15bf, std::nullopt), "AMD 15BF Graphics, one name");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x731f, std::nullopt), "");
}

/// The card at 0000:0c:00.0 in the tree.
pci::Function card(const Tree& tree) { return pci::read_function(tree / "0000:0c:00.0").value(); }

DeviceInfo identified(const Tree& tree) {
  return identify(card(tree),
                  {tree.path(), tree / "amdgpu.ids", drm::NodeMap(tree.path()), kfd_nodes(tree.path())});
}

TEST(Identify, ReadsWhatThereIs) {
  const Tree tree = make_tree({{"amdgpu.ids", kIds},
                               {"module/amdgpu/version", "6.12.12\n"},
                               {"0000:0c:00.0/uevent", "DRIVER=amdgpu\nPCI_ID=1002:73BF\n"},
                               {"0000:0c:00.0/revision", "0xc0\n"},
                               {"0000:0c:00.0/unique_id", "946d7e1ef9b172dd\n"},
                               {"0000:0c:00.0/serial_number", "PCB123\n"},
                               {"0000:0c:00.0/vbios_version", "113-D4121EXT-CO1\n"},
                               {"0000:0c:00.0/fw_version/smc_fw_version", "0x003a5800\n"},
                               {"0000:0c:00.0/numa_node", "1\n"},
                               {"class/kfd/kfd/topology/nodes/1/properties",
                                "simd_count 160\nsimd_per_cu 2\ngfx_target_version 100300\n"
                                "location_id 3072\ndomain 0\n"},
                               {"0000:0c:00.0/drm/card1/dev", "226:1\n"},
                               {"0000:0c:00.0/drm/renderD129/dev", "226:129\n"}});
  DeviceInfo expected;
  expected.uuid = "GPU-946d7e1ef9b172dd";
  expected.vendor = "amd";
  expected.model = "AMD Radeon RX 6900 XT";
  expected.pci_address = "0000:0c:00.0";
  expected.serial = "PCB123";
  expected.driver = "amdgpu";
  expected.driver_version = "6.12.12";
  expected.vbios_version = "113-D4121EXT-CO1";
  expected.firmware_version = "58.88.0";
  expected.architecture = "gfx1030";
  expected.compute_units = 80;
  expected.minor = "129";
  expected.numa_node = 1;
  expected.source = tree / "0000:0c:00.0";
  EXPECT_EQ(identified(tree), expected);
}

TEST(Identify, LeavesOutWhatThereIsNot) {
  const Tree tree = make_tree({{"0000:0c:00.0/uevent", "DRIVER=radeon\nPCI_ID=1002:6818\n"},
                               {"0000:0c:00.0/numa_node", "-1\n"},
                               {"0000:0c:00.0/product_name", ""}});
  DeviceInfo expected;
  expected.uuid = "0000:0c:00.0";
  expected.vendor = "amd";
  expected.model = "AMD 6818";
  expected.pci_address = "0000:0c:00.0";
  expected.driver = "radeon";
  expected.source = tree / "0000:0c:00.0";
  EXPECT_EQ(identified(tree), expected);
}

TEST(Identify, TakesTheBoardsOwnNameWhereTheListHasNone) {
  const Tree tree = make_tree(
      {{"0000:0c:00.0/uevent", "PCI_ID=1002:73BF\n"}, {"0000:0c:00.0/product_name", "AMD Instinct MI999\n"}});
  EXPECT_EQ(identified(tree).model, "AMD Instinct MI999");
}

TEST(SmcVersion, IsAsTheDriversLogHasIt) {
  EXPECT_EQ(smc_version("0x004c6000"), "76.96.0");
  EXPECT_EQ(smc_version("0x0a3a5801"), "58.88.1");
  for (const char* const none : {"", "0x00000000", "58.88.0", "0x1ffffffff"})
    EXPECT_EQ(smc_version(none), "");
}

TEST(UuidOf, AUniqueIdOfNothingIsNone) {
  for (const char* const id : {"", "\n", "0\n", "0000000000000000\n"}) {
    const Tree tree = make_tree({{"0000:0c:00.0/uevent", ""}, {"0000:0c:00.0/unique_id", id}});
    EXPECT_EQ(uuid_of(card(tree)), "0000:0c:00.0");
  }
}

TEST(SeparateTwins, TheFirstKeepsTheUuid) {
  std::vector<DeviceInfo> devices(3);
  for (DeviceInfo& device : devices) device.uuid = "GPU-1";
  devices[0].pci_address = "0000:03:00.0";
  devices[1].pci_address = "0000:04:00.0";
  devices[2].uuid = devices[2].pci_address = "0000:05:00.0";
  std::vector<std::string> notes;
  separate_twins(devices, notes);
  EXPECT_EQ(devices[0].uuid, "GPU-1");
  EXPECT_EQ(devices[1].uuid, "0000:04:00.0");
  EXPECT_EQ(devices[2].uuid, "0000:05:00.0");
  EXPECT_EQ(notes, (std::vector<std::string>{"0000:04:00.0: another card has the unique_id of GPU-1, so this "
                                             "one is identified by its PCI address"}));
}

}  // namespace
}  // namespace gpumeter::amd
