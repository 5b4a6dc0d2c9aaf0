#include "collectors/amd/paths.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

TEST(AmdPaths, TurnNamesIntoPathsOfTheCard) {
  const Tree tree =
      make_tree({{"0000:0a:00.0/uevent", "PCI_CLASS=60400\nPCI_ID=1022:1483\n"},
                 {"0000:0a:00.0/0000:0b:00.0/uevent", "PCI_CLASS=60400\nPCI_ID=1002:1478\n"},
                 {"0000:0a:00.0/0000:0b:00.0/0000:0c:00.0/uevent", "PCI_CLASS=30000\nPCI_ID=1002:73BF\n"},
                 {"0000:0a:00.0/0000:0b:00.0/0000:0c:00.0/hwmon/hwmon7/name", "amdgpu\n"},
                 {"0000:0a:00.0/0000:0b:00.0/0000:0c:00.0/hwmon/hwmon7/temp2_label", "junction\n"}});
  const std::string card = tree / "0000:0a:00.0/0000:0b:00.0/0000:0c:00.0";
  AmdPaths paths(card);
  EXPECT_EQ(paths.resolve("gpu_busy_percent"), card + "/gpu_busy_percent");
  EXPECT_EQ(paths.resolve("hwmon/power1_cap"), card + "/hwmon/hwmon7/power1_cap");
  EXPECT_EQ(paths.resolve("hwmon/temp{junction}_crit"), card + "/hwmon/hwmon7/temp2_crit");
  EXPECT_EQ(paths.resolve("hwmon/temp{edge}_crit"), std::nullopt);
  EXPECT_EQ(paths.resolve("upstream/max_link_width"), tree / "0000:0a:00.0/0000:0b:00.0/max_link_width");
}

TEST(AmdPaths, WithoutHwmonThereAreNoSensors) {
  const Tree tree = make_tree({{"0000:0c:00.0/uevent", ""}});
  EXPECT_EQ(AmdPaths(tree / "0000:0c:00.0").resolve("hwmon/power1_cap"), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::amd
