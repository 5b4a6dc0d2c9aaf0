#include "exporter/store/label_block.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

DeviceInfo card() {
  DeviceInfo device;
  device.uuid = "0000:0c:00.0";
  device.vendor = "amd";
  device.model = "Radeon \"RX\"";
  device.pci_address = "0000:0c:00.0";
  device.serial = "17";
  return device;
}

TEST(LabelBlock, HasIndexUuidVendorAndModelByDefault) {
  EXPECT_EQ(LabelBlock(card(), 3, "left").text(),
            R"(gpu="3",uuid="0000:0c:00.0",vendor="amd",model="Radeon \"RX\"")");
}

TEST(LabelBlock, OrdersConfiguredLabelsAlwaysAlike) {
  const std::vector<std::string> names = {"name", "serial", "pci_address"};
  EXPECT_EQ(LabelBlock(card(), 0, "left", *DeviceLabels::of(names)).text(),
            R"(gpu="0",uuid="0000:0c:00.0",pci_address="0000:0c:00.0",serial="17",name="left")");
}

TEST(LabelBlock, LeavesOutWhatIsNotKnown) {
  DeviceInfo device = card();
  device.model.clear();
  EXPECT_EQ(LabelBlock(device, 0, "").text(), R"(gpu="0",uuid="0000:0c:00.0",vendor="amd")");
}

TEST(LabelBlock, RefusesAnUnknownDeviceLabel) {
  const std::vector<std::string> names = {"vendor", "colour"};
  EXPECT_EQ(DeviceLabels::of(names), std::nullopt);
}

TEST(LabelBlock, AppendsTheSeriesOwnLabels) {
  const std::vector<Label> sensor = {{"sensor", "hotspot"}};
  const LabelBlock device(card(), 0, "", {.vendor = false, .model = false});
  EXPECT_EQ(device.with(sensor).text(), R"(gpu="0",uuid="0000:0c:00.0",sensor="hotspot")");
  EXPECT_EQ(device.with({}).text(), R"(gpu="0",uuid="0000:0c:00.0")");
}

TEST(LabelBlock, NeverHasANameTwice) {
  const std::vector<std::string> names = {"serial"};
  const std::vector<Label> own = {{"serial", "other"}, {"driver", "amdgpu"}, {"driver", "again"}};
  EXPECT_EQ(LabelBlock(card(), 0, "", *DeviceLabels::of(names)).with(own).text(),
            R"(gpu="0",uuid="0000:0c:00.0",serial="17",driver="amdgpu")");
}

TEST(LabelBlock, IsNotFooledByValuesThatLookLikeLabels) {
  const std::vector<Label> labels = {{"a", "x,b="}, {"c", "\",d=\\"}, {"b", "1"}, {"d", "2"}};
  EXPECT_EQ(LabelBlock(labels).text(), R"(a="x,b=",c="\",d=\\",b="1",d="2")");
}

TEST(LabelBlock, SortsByDeviceAndThenWhatBelongsToNone) {
  EXPECT_EQ(LabelBlock(card(), 7, "").order(), 7U);
  EXPECT_EQ(LabelBlock(card(), 7, "").with({}).order(), 7U);
  EXPECT_EQ(LabelBlock().order(), LabelBlock::kNoDevice);
  EXPECT_EQ(LabelBlock().text(), "");
}

}  // namespace
}  // namespace gpumeter
