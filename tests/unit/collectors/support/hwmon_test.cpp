#include "collectors/support/hwmon.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

TEST(Hwmon, IsFoundByNameWhateverItsNumber) {
  const Tree tree = make_tree({{"hwmon/hwmon3/name", "nvme\n"}, {"hwmon/hwmon11/name", "amdgpu\n"}});
  EXPECT_EQ(Hwmon::find(tree.path(), {"amdgpu", "radeon"}).value().path(), tree / "hwmon/hwmon11");
  EXPECT_FALSE(Hwmon::find(tree.path(), {"xe"}).has_value());
  EXPECT_FALSE(Hwmon::find(tree / "nothing", {"amdgpu"}).has_value());
}

TEST(Hwmon, SensorsGoByLabelNotByNumber) {
  const Tree tree = make_tree({{"hwmon/hwmon0/name", "amdgpu\n"},
                               {"hwmon/hwmon0/temp2_label", "junction\n"},
                               {"hwmon/hwmon0/temp2_input", "50000\n"},
                               {"hwmon/hwmon0/temp3_label", "mem\n"},
                               {"hwmon/hwmon0/temp1_input", "1\n"}});
  const Hwmon hwmon = Hwmon::find(tree.path(), {"amdgpu"}).value();
  EXPECT_EQ(hwmon.index("temp", "junction", 1), 2);
  EXPECT_EQ(hwmon.index("temp", "mem", 2), 3);
  EXPECT_EQ(hwmon.index("temp", "edge", 1), std::nullopt);
  EXPECT_EQ(hwmon.index("freq", "sclk", 1), std::nullopt);
}

TEST(Hwmon, SensorsWithoutAnyLabelGoByPosition) {
  const Tree tree = make_tree({{"hwmon/hwmon0/name", "radeon\n"}, {"hwmon/hwmon0/temp1_input", "27000\n"}});
  const Hwmon hwmon = Hwmon::find(tree.path(), {"radeon"}).value();
  EXPECT_EQ(hwmon.index("temp", "edge", 1), 1);
  EXPECT_EQ(hwmon.index("temp", "junction", 2), std::nullopt);
}

}  // namespace
}  // namespace gpumeter
