#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "collectors/amd/chip.hpp"

namespace gpumeter::amd {
namespace {

TEST(Throttle, CausesAreTheirRangesOfBits) {
  EXPECT_EQ(mask_of_cause("power"), 0x00000000000000ffU);
  EXPECT_EQ(mask_of_cause("current"), 0x0000000000ff0000U);
  EXPECT_EQ(mask_of_cause("thermal"), 0x00003fff00000000U);
  EXPECT_EQ(mask_of_cause("hardware"), 0x0000c00000000000U);  // prochot
  EXPECT_EQ(mask_of_cause("reliability"), 0x0300000000000000U);
}

TEST(Throttle, EveryReasonHasAnExportedCauseAndABitOfItsOwn) {
  std::set<int> bits;
  std::set<std::string_view> words;
  std::uint64_t causes = 0;
  for (const std::string_view cause : kThrottleCauses) causes |= mask_of_cause(cause);
  for (const ThrottleReason& reason : kThrottleReasons) {
    EXPECT_TRUE(bits.insert(reason.bit).second) << reason.reason;
    EXPECT_TRUE(words.insert(reason.reason).second) << reason.reason;
    EXPECT_NE(causes & mask_of(reason), 0U) << reason.reason;
  }
}

}  // namespace
}  // namespace gpumeter::amd
