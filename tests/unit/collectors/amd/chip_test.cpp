#include "collectors/amd/chip.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace gpumeter::amd {
namespace {

TEST(Chip, IsToldByItsDevice) {
  EXPECT_EQ(chip_of(0x740f), Chip::mi200);
  EXPECT_EQ(chip_of(0x73bf), Chip::navi2x);
  EXPECT_EQ(chip_of(0x743f), Chip::navi2x);
  EXPECT_EQ(chip_of(0x163f), Chip::van_gogh);
  EXPECT_EQ(chip_of(0x731f), Chip::other);  // Navi 10
  EXPECT_EQ(chip_of(0x74a1), Chip::other);  // MI300X
}

TEST(Chip, BitsAreAskedInItsOwnOrder) {
  EXPECT_EQ(chip_throttle_mask(Chip::van_gogh, 0x60), 0x6U);  // FPPT and SPPT; a capture has both words
  EXPECT_EQ(chip_throttle_mask(Chip::navi2x, std::uint64_t{1} << 36), 0x4U);
  EXPECT_EQ(chip_throttle_mask(Chip::mi200, mask_of_cause("power")), 0x3U);
  EXPECT_EQ(chip_throttle_mask(Chip::mi200, mask_of_cause("reliability")), 0U);
  EXPECT_EQ(chip_throttle_mask(Chip::other, ~std::uint64_t{0}), 0U);
}

TEST(Chip, EveryBitHasOneMeaningWithAName) {
  std::uint64_t named = 0;
  for (const std::string_view cause : kThrottleCauses) named |= mask_of_cause(cause);
  for (const Chip chip : {Chip::mi200, Chip::navi2x, Chip::van_gogh}) {
    std::set<int> own, independent;
    for (const ChipThrottleBit& bit : throttle_bits(chip)) {
      EXPECT_TRUE(own.insert(bit.chip).second) << int{bit.chip};
      EXPECT_TRUE(independent.insert(bit.independent).second) << int{bit.independent};
      EXPECT_NE(named >> bit.independent & 1, 0U) << int{bit.independent};
    }
  }
}

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
