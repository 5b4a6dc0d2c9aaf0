#include "collectors/intel/collector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::intel {
namespace {

constexpr std::string_view kIds =
    "# List of PCI IDs\n"
    "1002  Advanced Micro Devices, Inc. [AMD/ATI]\n"
    "\t56a5  Another device of that number\n"
    "8086  Intel Corporation\n"
    "\t56a5  DG2 [Arc A380]\n"
    "\t\t1849 6004  Challenger ITX\n"
    "\t9a49  TigerLake-LP GT2 [Iris Xe Graphics]\n"
    "\t46a6  Alder Lake-P GT2\n"
    "80ee  InnoTek\n"
    "\tbeef  VirtualBox\n";

TEST(ProductName, IsThatOnTheBox) {
  const Tree tree({{"pci.ids", kIds}});
  EXPECT_EQ(product_name(tree / "pci.ids", 0x56a5), "Intel Arc A380");
  EXPECT_EQ(product_name(tree / "pci.ids", 0x9a49), "Intel Iris Xe Graphics");
  EXPECT_EQ(product_name(tree / "pci.ids", 0x46a6), "Intel Alder Lake-P GT2");
  EXPECT_EQ(product_name(tree / "pci.ids", 0xbeef), "");
  EXPECT_EQ(product_name(tree / "nothing", 0x56a5), "");
}

class IntelDiscoveryTest : public testing::Test {
 protected:
  void card(const std::string& address, const std::string& uevent) {
    tree_.write("bus/pci/devices/" + address + "/uevent", uevent);
  }
  Discovery found() {
    return *(*open_intel({tree_.path(), "/proc", &kRealClock, {{"ids_file", {tree_ / "pci.ids"}}}}))
                ->discover();
  }
  const Tree tree_{{{"pci.ids", kIds}}};
};

TEST_F(IntelDiscoveryTest, FindsTheCardsOfBothDrivers) {
  card("0000:00:02.0", "DRIVER=i915\nPCI_CLASS=30000\nPCI_ID=8086:9A49\n");
  card("0000:03:00.0", "DRIVER=xe\nPCI_CLASS=38000\nPCI_ID=8086:0BDB\n");
  card("0000:00:0b.0", "DRIVER=intel_vpu\nPCI_CLASS=120000\nPCI_ID=8086:643E\n");
  tree_.write("bus/pci/devices/0000:03:00.0/drm/renderD129/dev", "226:129\n");
  const Discovery result = found();
  ASSERT_EQ(result.devices.size(), 2U);
  EXPECT_EQ(result.devices[0].model, "Intel Iris Xe Graphics");
  EXPECT_EQ(result.devices[0].uuid, "0000:00:02.0");
  EXPECT_EQ(result.devices[1].model, "Intel 0bdb");
  EXPECT_EQ(result.devices[1].driver, "xe");
  EXPECT_EQ(result.devices[1].minor, "129");
  EXPECT_TRUE(result.notes.empty());
}

TEST_F(IntelDiscoveryTest, NamesTheReasonForACardThatIsNotRead) {
  card("0000:03:00.0", "PCI_CLASS=30000\nPCI_ID=8086:56A5\n");
  card("0000:04:00.0", "DRIVER=vfio-pci\nPCI_CLASS=30000\nPCI_ID=8086:56A5\n");
  card("0000:05:00.1", "DRIVER=xe\nPCI_CLASS=30000\nPCI_ID=8086:E20B\n");
  tree_.write("bus/pci/devices/0000:05:00.1/physfn/uevent", "");
  card("0000:06:00.0", "DRIVER=xe\nPCI_CLASS=30000\nPCI_ID=8086:E20B\n");
  tree_.write("bus/pci/devices/0000:06:00.0/survivability_mode", "Boot\n");
  const Discovery result = found();
  EXPECT_TRUE(result.devices.empty());
  EXPECT_THAT(result.notes,
              testing::ElementsAre(
                  "0000:03:00.0: Intel GPU without a driver: load xe or i915 (modprobe xe)",
                  "0000:04:00.0: Intel GPU is bound to vfio-pci, so it is not read; xe or i915 would make it "
                  "readable",
                  "0000:05:00.1: Intel GPU is a virtual function of another one, whose values include it",
                  "0000:06:00.0: Intel GPU is in survivability mode, so it is not read: install its firmware "
                  "again (fwupdmgr)"));
}

}  // namespace
namespace {

constexpr std::string_view kPort = "root/0000:00:01.0";
constexpr std::string_view kUp = "root/0000:00:01.0/0000:01:00.0";
constexpr std::string_view kDown = "root/0000:00:01.0/0000:01:00.0/0000:02:01.0";
constexpr std::string_view kCard = "root/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0";

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    for (const std::string_view bridge : {kPort, kUp, kDown}) {
      write(bridge, "uevent", "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=8086:4FA1\n");
    }
    write(kCard, "uevent", "DRIVER=xe\nPCI_CLASS=30000\nPCI_ID=8086:56A5\n");
    link(kCard, "2.5 GT/s PCIe", "1");
    link(kDown, "2.5 GT/s PCIe", "1");
    link(kUp, "16.0 GT/s PCIe", "8");
    link(kPort, "32.0 GT/s PCIe", "16");
  }
  void write(std::string_view folder, const std::string& name, const std::string& text) {
    tree_.write(std::string(folder) + "/" + name, text + "\n");
  }
  void link(std::string_view folder, const std::string& speed, const std::string& width) {
    write(folder, "max_link_speed", speed);
    write(folder, "max_link_width", width);
  }
  std::optional<std::string> found() {
    return slot_port(pci::read_function(tree_ / std::string(kCard)).value());
  }

  const Tree tree_{{}};
};

TEST_F(LinkTest, TheSlotIsThePortOfTheCardsSwitch) { EXPECT_EQ(found(), tree_ / std::string(kUp)); }

TEST_F(LinkTest, ACardWithoutASwitchIsItsOwnPort) {
  link(kCard, "32.0 GT/s PCIe", "16");
  EXPECT_EQ(found(), tree_ / std::string(kCard));
}

TEST_F(LinkTest, ASwitchOfAnotherVendorIsNotTheCards) {
  write(kDown, "uevent", "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=10b5:8724");
  EXPECT_EQ(found(), std::nullopt);
}

TEST_F(LinkTest, NotFurtherThanTwoLevels) {
  link(kUp, "2.5 GT/s PCIe", "1");
  EXPECT_EQ(found(), std::nullopt);
}

TEST_F(LinkTest, GraphicsInTheProcessorHaveNone) {
  link(kCard, "Unknown", "0");
  EXPECT_EQ(found(), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::intel
