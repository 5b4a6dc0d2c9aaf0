#include "collectors/files/paths.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/fakes/tree.hpp"

namespace gpumeter::files {
namespace {

constexpr UnlabelledSensor kUnlabelled[] = {
    {"temp", "edge", 1}, {"temp", "junction", 2}, {"power", "card", 1}};
constexpr HwmonChip kChips[] = {{"amdgpu", {}}, {"radeon", kUnlabelled}};
constexpr PathRules kRules = {kChips, [](const pci::Function& function, bool is_awake) {
                                return is_awake ? std::optional(pci::upstream_port(function)) : std::nullopt;
                              }};

TEST(Paths, TurnNamesIntoPathsOfTheDevice) {
  const Tree tree = make_tree({{"device/devfreq/1.gpu/cur_freq", "1\n"}, {"device/core1/busy", "1\n"}});
  const std::string device = tree / "device";
  Paths paths("", device);
  EXPECT_EQ(paths.resolve("load"), device + "/load");
  EXPECT_EQ(paths.resolve("devfreq/*/cur_freq"), device + "/devfreq/1.gpu/cur_freq");
  EXPECT_EQ(paths.resolve("devfreq/*/max_freq"), std::nullopt);
  EXPECT_EQ(paths.resolve("slice/busy"), std::nullopt);
  const std::string slice = "core1";
  paths.turn_to(&slice);
  EXPECT_EQ(paths.resolve("slice/busy"), device + "/core1/busy");
  EXPECT_EQ(paths.resolve("/proc/uptime"), "/proc/uptime");
}

TEST(Paths, TheHwmonFolderIsFoundByItsNameAndSensorsByTheirLabels) {
  const Tree tree = make_tree({{"hwmon/hwmon3/name", "nvme\n"},
                               {"hwmon/hwmon11/name", "amdgpu\n"},
                               {"hwmon/hwmon11/temp2_label", "junction\n"},
                               {"hwmon/hwmon11/temp2_input", "50000\n"},
                               {"hwmon/hwmon11/temp3_label", "mem\n"},
                               {"hwmon/hwmon11/temp1_input", "1\n"}});
  const std::string hwmon = tree / "hwmon/hwmon11/";
  Paths paths("", tree.path(), kRules);
  EXPECT_EQ(paths.resolve("hwmon/power1_cap"), hwmon + "power1_cap");
  EXPECT_EQ(paths.resolve("hwmon/temp{junction}_crit"), hwmon + "temp2_crit");
  EXPECT_EQ(paths.resolve("hwmon/temp{=mem}_input"), hwmon + "temp3_input");
  EXPECT_EQ(paths.resolve("hwmon/temp{edge}_crit"), std::nullopt);
  EXPECT_EQ(paths.resolve("hwmon/freq{sclk}_input"), std::nullopt);
  EXPECT_EQ(Paths("", tree / "nothing", kRules).resolve("hwmon/power1_cap"), std::nullopt);
}

TEST(Paths, SensorsWithoutAnyLabelGoByPosition) {
  const Tree tree = make_tree({{"hwmon/hwmon0/name", "radeon\n"},
                               {"hwmon/hwmon0/temp1_input", "27000\n"},
                               {"hwmon/hwmon0/power1_max", "1\n"}});
  Paths paths("", tree.path(), kRules);
  EXPECT_EQ(paths.resolve("hwmon/temp{edge}_input"), tree / "hwmon/hwmon0/temp1_input");
  EXPECT_EQ(paths.resolve("hwmon/power{card}_crit"), tree / "hwmon/hwmon0/power1_crit");
  EXPECT_EQ(paths.resolve("hwmon/temp{=edge}_input"), std::nullopt);
  EXPECT_EQ(paths.resolve("hwmon/temp{junction}_input"), std::nullopt);
}

TEST(Paths, WhatIsThereButCannotBeReadIsNoted) {
  const Tree tree = make_tree({{"nameless/hwmon/hwmon0/name", ""},
                               {"card/hwmon/hwmon0/name", "amdgpu\n"},
                               {"card/hwmon/hwmon0/temp1_label", ""},
                               {"card/hwmon/hwmon0/temp1_input", "1\n"}});
  Paths nameless("", tree / "nameless", kRules);
  EXPECT_EQ(nameless.resolve("hwmon/power1_cap"), std::nullopt);
  EXPECT_EQ(nameless.unreadable(), std::vector<std::string>{tree / "nameless/hwmon/hwmon0/name"});
  Paths paths("", tree / "card", kRules);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(paths.resolve("hwmon/temp{edge}_input"), std::nullopt);
  EXPECT_EQ(paths.unreadable(), std::vector<std::string>{tree / "card/hwmon/hwmon0/temp1_label"});
}

TEST(Paths, TheSlotIsWhereTheKindFindsIt) {
  const Tree tree =
      make_tree({{"0000:0a:00.0/uevent", "PCI_CLASS=60400\nPCI_ID=1022:1483\n"},
                 {"0000:0a:00.0/0000:0b:00.0/uevent", "PCI_CLASS=60400\nPCI_ID=1002:1478\n"},
                 {"0000:0a:00.0/0000:0b:00.0/0000:0c:00.0/uevent", "PCI_CLASS=30000\nPCI_ID=1002:73BF\n"}});
  const std::string card = tree / "0000:0a:00.0/0000:0b:00.0/0000:0c:00.0";
  EXPECT_EQ(Paths("", card, kRules).resolve("slot/max_link_width"),
            tree / "0000:0a:00.0/0000:0b:00.0/max_link_width");
  EXPECT_EQ(Paths("", card, kRules, false).resolve("slot/max_link_width"), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::files
