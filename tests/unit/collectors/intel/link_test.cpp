#include <gtest/gtest.h>

#include "collectors/intel/collector.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::intel {
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
