#include "collectors/nvidia/readers/tally.hpp"

#include <gtest/gtest.h>

namespace gpumeter::nvidia {
namespace {

TEST(Growth, IsNothingAtFirstAndAfterAReset) {
  Growth growth;
  EXPECT_EQ(growth.of(100), 0);
  EXPECT_EQ(growth.of(130), 30);
  EXPECT_EQ(growth.of(130), 0);
  EXPECT_EQ(growth.of(20), 0);
  EXPECT_EQ(growth.of(25), 5);
  growth.restart();
  EXPECT_EQ(growth.of(1000), 0);
}

}  // namespace
}  // namespace gpumeter::nvidia
