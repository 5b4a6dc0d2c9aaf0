#include "collectors/files/text.hpp"

#include <gtest/gtest.h>

namespace gpumeter::files {
namespace {

TEST(LeadingNumber, MayHaveAUnitOrAFrequencyBehind) {
  EXPECT_EQ(leading_number("850"), 850);
  EXPECT_EQ(leading_number(" 850 W\n"), 850);
  EXPECT_EQ(leading_number("-12.5"), -12.5);
  EXPECT_EQ(leading_number("37@800000000Hz"), 37);
  EXPECT_EQ(leading_number("48.25%"), 48.25);
}

TEST(LeadingNumber, IsNoOtherText) {
  for (const char* const text : {"", "W 850", "inf", "nan", "-", "1.2.3", "12a", "1e999", "0x12", "N/A"}) {
    EXPECT_EQ(leading_number(text), std::nullopt) << text;
  }
}

TEST(ChosenWord, IsTheOneInBracketsOrTheWholeText) {
  EXPECT_EQ(chosen_word("low [auto] high\n"), "auto");
  EXPECT_EQ(chosen_word("[base] power_saving"), "base");
  EXPECT_EQ(chosen_word("In reset\n"), "In reset");
  EXPECT_EQ(chosen_word("] odd ["), "] odd [");
}

TEST(IsOneOf, ComparesWithoutCase) {
  EXPECT_TRUE(is_one_of("Operational\n", "operational|ready"));
  EXPECT_TRUE(is_one_of("In Reset", "malfunction|in reset"));
  EXPECT_FALSE(is_one_of("In reset after device release", "in reset"));
  EXPECT_FALSE(is_one_of("", "operational"));
}

TEST(ListField, CountsFromZero) {
  EXPECT_EQ(list_field("POWER_STATUS_VALID,1763000000,1.5, 2.5 ,3", 3), "2.5");
  EXPECT_EQ(list_field("a,b", 2), "");
  EXPECT_EQ(list_field("", 0), "");
}

constexpr std::string_view kTable =
    "queue\ttimestamp\tjobs\truntime\nbin\t239043069420\t22620\t17438164056\nrender\t239043069420\t22619\t272"
    "84814161\n";

TEST(Cell, GoesByNamesOfRowAndColumn) {
  EXPECT_EQ(cell(kTable, "bin", "runtime"), 17438164056);
  EXPECT_EQ(cell(kTable, "render", "jobs"), 22619);
  EXPECT_EQ(cell("queue jobs  runtime\nbin  1  2\n", "bin", "runtime"), 2);
}

TEST(Cell, IsNothingWithoutRowColumnOrNumber) {
  EXPECT_EQ(cell(kTable, "csd", "runtime"), std::nullopt);
  EXPECT_EQ(cell(kTable, "bin", "watts"), std::nullopt);
  EXPECT_EQ(cell(kTable, "bin", "queue"), std::nullopt);
  EXPECT_EQ(cell("queue runtime\nbin\n", "bin", "runtime"), std::nullopt);
  EXPECT_EQ(cell("", "bin", "runtime"), std::nullopt);
}

TEST(CountTest, IsTheNumberBehindItsWord) {
  EXPECT_EQ(count_of("ue: 2\nce: 17\n", "ce"), 17);
  EXPECT_EQ(count_of("DLP 1\nTLP 3\nTOTAL_ERR_FATAL 4", "TLP"), 3);
  EXPECT_EQ(count_of("PoisonTLPBlocked 3\n", "TLP"), std::nullopt);
  EXPECT_EQ(count_of("ce: 1x\n", "ce"), std::nullopt);
  EXPECT_EQ(count_of("ce: -1\n", "ce"), std::nullopt);
  EXPECT_EQ(count_of("ce:\n", "ce"), std::nullopt);
  EXPECT_EQ(count_of("", "ce"), std::nullopt);
}

TEST(CountTest, ASentenceHasNone) {
  EXPECT_TRUE(has_counts("ue: 0\nce: 0\n"));
  EXPECT_FALSE(has_counts("Query currently inaccessible\n"));
  EXPECT_FALSE(has_counts(""));
}

TEST(Matches, StarsStayWithinANameUnlessDoubled) {
  EXPECT_TRUE(matches("devfreq/*/cur_freq", "devfreq/fb000000.gpu/cur_freq"));
  EXPECT_FALSE(matches("devfreq/*/cur_freq", "devfreq/a/b/cur_freq"));
  EXPECT_TRUE(matches("**/total", "total"));
  EXPECT_TRUE(matches("**/device_mem/*/total", "neuron_core0/stats/memory_usage/device_mem/tensors/total"));
  EXPECT_FALSE(matches("**/device_mem/total", "device_mem/tensors/total"));
  EXPECT_TRUE(matches("core*/**/x", "core1/a/b/x"));
  EXPECT_TRUE(matches("*", "anything"));
  EXPECT_FALSE(matches("", "a"));
}

}  // namespace
}  // namespace gpumeter::files
