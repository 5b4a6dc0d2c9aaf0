#include "collectors/attribution/shares.hpp"

#include <gtest/gtest.h>

namespace gpumeter::workloads {
namespace {

using Parts = std::vector<double>;

Parts parts_of(const std::vector<Claim>& claims) {
  Parts parts;
  divide(claims, parts);
  return parts;
}

TEST(Shares, AreByBusyTimeWhereSomebodyWasBusy) {
  EXPECT_EQ(parts_of({{3, 0, 1}, {1, 900, 1}, {0, 100, 1}}), (Parts{0.75, 0.25, 0}));
}

TEST(Shares, AreByMemoryWhereNobodyWasBusy) {
  EXPECT_EQ(parts_of({{0, 300, 1}, {0, 100, 5}, {0, 0, 1}}), (Parts{0.75, 0.25, 0}));
}

TEST(Shares, AreEqualForEachProcessWhereNothingIsKnown) {
  EXPECT_EQ(parts_of({{0, 0, 3}, {0, 0, 1}, {0, 0, 0}}), (Parts{0.75, 0.25, 0}));
}

TEST(Shares, AreNobodysWhereNobodyIs) {
  Parts parts = {7};
  EXPECT_FALSE(divide({}, parts));
  EXPECT_EQ(parts, Parts{});
  EXPECT_EQ(parts_of({{0, 0, 0}, {0, 0, 0}}), (Parts{0, 0}));
}

}  // namespace
}  // namespace gpumeter::workloads
