#include "exporter/store/labels.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/fakes/walked.hpp"

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

TEST(Labels, OfADeviceAreIndexUuidVendorAndModelByDefault) {
  EXPECT_EQ(text_of({card(), 3, "left"}), R"(gpu="3",uuid="0000:0c:00.0",vendor="amd",model="Radeon "RX"")");
}

TEST(Labels, OfADeviceHaveAlwaysTheSameOrder) {
  const DeviceLabels all_but_two = {
      .vendor = false, .model = false, .pci_address = true, .serial = true, .name = true};
  EXPECT_EQ(text_of({card(), 0, "left", all_but_two}),
            R"(gpu="0",uuid="0000:0c:00.0",pci_address="0000:0c:00.0",serial="17",name="left")");
}

TEST(Labels, LeaveOutWhatIsNotKnown) {
  DeviceInfo device = card();
  device.model.clear();
  EXPECT_EQ(text_of({device, 0, ""}), R"(gpu="0",uuid="0000:0c:00.0",vendor="amd")");
}

TEST(Labels, AppendTheSeriesOwn) {
  const Labels device(card(), 0, "", {.vendor = false, .model = false});
  EXPECT_EQ(text_of(device.with({{"sensor", "hotspot"}})), R"(gpu="0",uuid="0000:0c:00.0",sensor="hotspot")");
  EXPECT_EQ(device.with({}), device);
}

TEST(Labels, NeverHaveANameTwice) {
  const Labels device(card(), 0, "", {.vendor = false, .model = false, .serial = true});
  EXPECT_EQ(text_of(device.with({{"serial", "other"}, {"driver", "amdgpu"}, {"driver", "again"}})),
            R"(gpu="0",uuid="0000:0c:00.0",serial="17",driver="amdgpu")");
}

TEST(Labels, KeepValuesOfAnyBytes) {
  const std::string odd("=\0\"\xff", 4);
  const Labels labels{{"a", "x,b="}, {"c", odd}, {"b", "1"}};
  EXPECT_EQ(labels.pairs(), (std::vector<Labels::Pair>{{"a", "x,b="}, {"c", odd}, {"b", "1"}}));
}

TEST(Labels, SortByDeviceAndThenWhatBelongsToNone) {
  EXPECT_EQ(Labels(card(), 7, "").order(), 7U);
  EXPECT_EQ(Labels(card(), 7, "").with({{"a", "b"}}).order(), 7U);
  EXPECT_EQ(Labels().order(), Labels::kNoDevice);
  EXPECT_EQ(text_of(Labels()), "");
}

TEST(Labels, AreOneCopyHoweverTheyWereMade) {
  const Labels at_once{{"a", "1"}, {"b", "2"}, {"c", "3"}};
  EXPECT_EQ(Labels({{"a", "1"}}).with({{"b", "2"}, {"c", "3"}}), at_once);
  EXPECT_EQ(Labels({{"a", "1"}, {"b", "2"}}).with({{"c", "3"}}).id(), at_once.id());
  EXPECT_NE(Labels({{"a", "1"}, {"c", "3"}, {"b", "2"}}), at_once) << "the order counts";
  EXPECT_NE(Labels({{"a", "1"}, {"b", "23"}}), Labels({{"a", "12"}, {"b", "3"}}));
  EXPECT_NE(Labels({{"gpu", "0"}}), Labels(DeviceInfo{}, 0, "")) << "that of a device is sorted by it";
}

TEST(Labels, MayBeMadeAndForgottenByManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 3000; ++i) {
        const Labels base{{"run", std::to_string(i % 3)}};
        const Labels copy = base.with({{"user", "u"}});
        EXPECT_EQ(copy.pairs().size(), 2U);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gpumeter
