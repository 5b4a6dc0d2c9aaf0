#include "collectors/table/row.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpumeter {
namespace {

constexpr LabelSet kThree("severity", "uncorrected", "location", "sram", "kind", "any");
constexpr PackedLabels kPacked = kThree;

TEST(PackedLabels, ThePairsComeBackInTheirOrder) {
  EXPECT_EQ(kPacked.unpacked().labels(),
            (std::vector<Label>{{"severity", "uncorrected"}, {"location", "sram"}, {"kind", "any"}}));
}

TEST(PackedLabels, UnusedPlacesStayEmpty) {
  EXPECT_EQ(PackedLabels().unpacked().labels(), std::vector<Label>());
  EXPECT_EQ(PackedLabels(LabelSet("fan", "0")).unpacked().labels(), (std::vector<Label>{{"fan", "0"}}));
}

TEST(PackedLabels, SetsAreEqualIfTheirTextsAre) {
  const std::string sensor = "sensor";
  EXPECT_EQ(PackedLabels(LabelSet(sensor, "core")), PackedLabels(LabelSet("sensor", "core")));
  EXPECT_FALSE(PackedLabels(LabelSet("sensor", "core")) == PackedLabels(LabelSet("sensor", "cores")));
  EXPECT_FALSE(PackedLabels(LabelSet("sensor", "core")) == kPacked);
}

// A driver chooses the names of its sensors.
TEST(PackedLabels, AValueThatIsTooLongIsCut) {
  const std::string longest(PackedLabels::kLongestText, 'x');
  EXPECT_EQ(PackedLabels(LabelSet("sensor", longest)).unpacked().labels(),
            (std::vector<Label>{{"sensor", longest}}));
  const std::string longer = longest + "y";
  EXPECT_EQ(PackedLabels(LabelSet("sensor", longer)).unpacked().labels(),
            (std::vector<Label>{{"sensor", longest}}));
}

}  // namespace
}  // namespace gpumeter
