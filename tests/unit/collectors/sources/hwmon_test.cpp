#include "collectors/sources/hwmon.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

class HwmonTest : public testing::Test {
 protected:
  std::vector<std::string> unreadable_;
};

TEST_F(HwmonTest, IsFoundByNameWhateverItsNumber) {
  const Tree tree = make_tree({{"hwmon/hwmon3/name", "nvme\n"}, {"hwmon/hwmon11/name", "amdgpu\n"}});
  EXPECT_EQ(Hwmon::find(tree.path(), {"amdgpu", "radeon"}, unreadable_).value().path(),
            tree / "hwmon/hwmon11");
  EXPECT_FALSE(Hwmon::find(tree.path(), {"xe"}, unreadable_).has_value());
  EXPECT_FALSE(Hwmon::find(tree / "nothing", {"amdgpu"}, unreadable_).has_value());
}

TEST_F(HwmonTest, SensorsGoByLabelNotByNumber) {
  const Tree tree = make_tree({{"hwmon/hwmon0/name", "amdgpu\n"},
                               {"hwmon/hwmon0/temp2_label", "junction\n"},
                               {"hwmon/hwmon0/temp2_input", "50000\n"},
                               {"hwmon/hwmon0/temp3_label", "mem\n"},
                               {"hwmon/hwmon0/temp1_input", "1\n"}});
  const Hwmon hwmon = Hwmon::find(tree.path(), {"amdgpu"}, unreadable_).value();
  EXPECT_EQ(hwmon.index("temp", "junction", 1, unreadable_), 2);
  EXPECT_EQ(hwmon.index("temp", "mem", 2, unreadable_), 3);
  EXPECT_EQ(hwmon.index("temp", "edge", 1, unreadable_), std::nullopt);
  EXPECT_EQ(hwmon.index("freq", "sclk", 1, unreadable_), std::nullopt);
}

TEST_F(HwmonTest, SensorsWithoutAnyLabelGoByPosition) {
  const Tree tree = make_tree({{"hwmon/hwmon0/name", "radeon\n"}, {"hwmon/hwmon0/temp1_input", "27000\n"}});
  const Hwmon hwmon = Hwmon::find(tree.path(), {"radeon"}, unreadable_).value();
  EXPECT_EQ(hwmon.index("temp", "edge", 1, unreadable_), 1);
  EXPECT_EQ(hwmon.index("temp", "junction", 2, unreadable_), std::nullopt);
}

TEST_F(HwmonTest, WhatIsThereButCannotBeReadIsNoted) {
  const Tree tree = make_tree({{"nameless/hwmon/hwmon0/name", ""},
                               {"card/hwmon/hwmon0/name", "amdgpu\n"},
                               {"card/hwmon/hwmon0/temp1_label", ""},
                               {"card/hwmon/hwmon0/temp1_input", "1\n"}});
  EXPECT_FALSE(Hwmon::find(tree / "nameless", {"amdgpu"}, unreadable_).has_value());
  EXPECT_EQ(unreadable_, std::vector<std::string>{tree / "nameless/hwmon/hwmon0/name"});

  unreadable_.clear();
  const Hwmon hwmon = Hwmon::find(tree / "card", {"amdgpu"}, unreadable_).value();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(hwmon.index("temp", "edge", 1, unreadable_), std::nullopt);
  EXPECT_EQ(unreadable_, std::vector<std::string>{tree / "card/hwmon/hwmon0/temp1_label"});
}

}  // namespace
}  // namespace gpumeter
