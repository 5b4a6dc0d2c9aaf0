#include "collectors/sources/host/pressure.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

TEST(ParsePressure, TakesTheTotals) {
  EXPECT_EQ(parse_pressure("some avg10=0.12 avg60=3.40 avg300=0.00 total=2500000\n"
                           "full avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n"),
            (Pressure{2.5, 0.5}));
}

TEST(ParsePressure, AValueThatIsNotThereIsAbsent) {
  EXPECT_EQ(parse_pressure(""), Pressure());
  EXPECT_EQ(parse_pressure("some avg10=0.12 total=1000000"), (Pressure{1, std::nullopt}));
  EXPECT_EQ(parse_pressure("some total=-1\nfull total=\n"), Pressure());
  EXPECT_EQ(parse_pressure("other total=7\n"), Pressure());
}

TEST(ReadPressure, IsAbsentWithoutPsi) {
  EXPECT_EQ(read_pressure(make_tree({}).path(), "memory"), Pressure());
}

TEST(ReadPressure, OfThisKernelGrowsOnly) {
  const Pressure before = read_pressure("/proc", "memory");
  if (!before.some) GTEST_SKIP() << "this kernel has no /proc/pressure/memory";
  const Pressure after = read_pressure("/proc", "memory");
  EXPECT_GE(after.some, before.some);
  EXPECT_GE(after.full, before.full);
}

}  // namespace
}  // namespace gpumeter
