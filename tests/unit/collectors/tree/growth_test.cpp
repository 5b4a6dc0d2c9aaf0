#include "collectors/tree/growth.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gpumeter::tree {
namespace {

using Values = std::vector<std::optional<double>>;

auto reading(const Values& values) {
  return [&values](std::size_t i) { return values[i]; };
}

TEST(Growth, IsTheLargestAndSurvivesAReset) {
  Growth growth;
  const Values first{10, 20};
  const Values second{15, 22};
  const Values reset{16, 4};
  const Values missing{std::nullopt, 5};
  EXPECT_EQ(growth.largest(2, reading(first)), std::nullopt);
  EXPECT_EQ(growth.largest(2, reading(second)), 5);
  EXPECT_EQ(growth.largest(2, reading(reset)), 4);  // the second counter was written to 0
  EXPECT_EQ(growth.largest(2, reading(missing)), 1);
}

TEST(BusiestTotal, CountsNothingOverAGap) {
  BusiestTotal total;
  const Values first{10};
  const Values second{15};
  const Values third{115};
  EXPECT_EQ(total.advance(1, reading(first)), 0);
  EXPECT_EQ(total.advance(1, reading(second)), 5);
  total.restart();
  EXPECT_EQ(total.advance(1, reading(third)), 5);
}

TEST(WrappingTotal, AddsCountersOf32Bits) {
  WrappingTotal total;
  const Values first{4294967290.0, 100};
  const Values second{4, 105};
  EXPECT_EQ(total.advance(2, reading(first)), 0);
  EXPECT_EQ(total.advance(2, reading(second)), 15);
}

}  // namespace
}  // namespace gpumeter::tree
