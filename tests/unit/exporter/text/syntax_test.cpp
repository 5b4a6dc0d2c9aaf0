#include "exporter/text/syntax.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace gpumeter {
namespace {

std::string label(std::string_view raw) { return std::string(EscapedText::label_value(raw).view()); }
std::string help(std::string_view raw, Format format) {
  return std::string(EscapedText::help(raw, format).view());
}

TEST(EscapedText, LeavesPlainTextAsItIs) { EXPECT_EQ(label("Radeon RX 6900 XT"), "Radeon RX 6900 XT"); }

TEST(EscapedText, EscapesWhatWouldEndALabelValue) { EXPECT_EQ(label("a\\b\"c\nd"), "a\\\\b\\\"c\\nd"); }

TEST(EscapedText, LeavesOtherControlBytes) {
  EXPECT_EQ(label(std::string_view("a\0\t\rb", 5)), std::string("a\0\t\rb", 5));
}

TEST(EscapedText, EscapesQuotesInHelpForOpenMetricsOnly) {
  EXPECT_EQ(help("A \"b\"\n\\.", Format::text), "A \"b\"\\n\\\\.");
  EXPECT_EQ(help("A \"b\"\n\\.", Format::openmetrics), "A \\\"b\\\"\\n\\\\.");
}

TEST(EscapedText, KeepsUtf8OfEveryLength) {
  EXPECT_EQ(label("\u00B5 \u20AC \U0001F600 \U0010FFFF"), "\u00B5 \u20AC \U0001F600 \U0010FFFF");
}

TEST(EscapedText, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(label("\xFF"), "\uFFFD");
  EXPECT_EQ(label("a\x80z"), "a\uFFFDz");
  EXPECT_EQ(label("\xC0\xAF"), "\uFFFD\uFFFD");                      // overlong '/'
  EXPECT_EQ(label("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");            // overlong NUL
  EXPECT_EQ(label("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(label("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
  EXPECT_EQ(label("\xE2\x82"), "\uFFFD\uFFFD");                      // cut off
  EXPECT_EQ(label("\xE2\"x"), "\uFFFD\\\"x");                        // the next character is checked again
}

using Limits = std::numeric_limits<double>;

std::string text_of(double value) {
  char text[kValueTextMax];
  return {text, write_value(text, value)};
}

// Go's strconv.FormatFloat(value, 'g', -1, 64) gives the same text, and every Prometheus client writes it.
TEST(TextFormat, WritesNumbersAsGoDoes) {
  EXPECT_EQ(text_of(0), "0");
  EXPECT_EQ(text_of(-0.0), "-0");
  EXPECT_EQ(text_of(1), "1");
  EXPECT_EQ(text_of(-17), "-17");
  EXPECT_EQ(text_of(0.1), "0.1");
  EXPECT_EQ(text_of(-0.5), "-0.5");
  EXPECT_EQ(text_of(36.5), "36.5");
  EXPECT_EQ(text_of(100000), "100000");
  EXPECT_EQ(text_of(999999), "999999");
  EXPECT_EQ(text_of(-999999), "-999999");
  EXPECT_EQ(text_of(999999.5), "999999.5");
  EXPECT_EQ(text_of(1e6), "1e+06");
  EXPECT_EQ(text_of(-1e6), "-1e+06");
  EXPECT_EQ(text_of(123456789), "1.23456789e+08");
  EXPECT_EQ(text_of(17163091968), "1.7163091968e+10");
  EXPECT_EQ(text_of(0.0001), "0.0001");
  EXPECT_EQ(text_of(0.00001), "1e-05");
  EXPECT_EQ(text_of(1e21), "1e+21");
  EXPECT_EQ(text_of(1e100), "1e+100");
  EXPECT_EQ(text_of(2.0 / 3), "0.6666666666666666");
}

TEST(TextFormat, HasRoomForTheLongestNumber) {
  EXPECT_EQ(text_of(-2.2250738585072014e-308), "-2.2250738585072014e-308");
  EXPECT_EQ(text_of(-Limits::denorm_min()), "-5e-324");
  EXPECT_EQ(text_of(Limits::max()), "1.7976931348623157e+308");
}

TEST(TextFormat, SpellsWhatIsNoNumberAsBothFormatsDo) {
  EXPECT_EQ(text_of(Limits::quiet_NaN()), "NaN");
  EXPECT_EQ(text_of(-Limits::quiet_NaN()), "NaN");
  EXPECT_EQ(text_of(Limits::infinity()), "+Inf");
  EXPECT_EQ(text_of(-Limits::infinity()), "-Inf");
}

constexpr MetricDescriptor kPower{"gpu_power_watts", "Power \"draw\".", "watts", MetricType::gauge};
constexpr MetricDescriptor kEnergy{"gpu_energy_joules_total", "Energy.", "joules", MetricType::counter};
constexpr MetricDescriptor kUp{"gpu_up", "Up.", "", MetricType::gauge};

TEST(TextFormat, HeadsAFamilyInText) {
  EXPECT_EQ(family_header(kPower, Format::text),
            "# HELP gpu_power_watts Power \"draw\".\n# TYPE gpu_power_watts gauge\n");
  EXPECT_EQ(family_header(kEnergy, Format::text),
            "# HELP gpu_energy_joules_total Energy.\n# TYPE gpu_energy_joules_total counter\n");
}

TEST(TextFormat, HeadsAFamilyInOpenMetrics) {
  EXPECT_EQ(family_header(kPower, Format::openmetrics),
            "# TYPE gpu_power_watts gauge\n# UNIT gpu_power_watts watts\n"
            "# HELP gpu_power_watts Power \\\"draw\\\".\n");
  EXPECT_EQ(family_header(kEnergy, Format::openmetrics),
            "# TYPE gpu_energy_joules counter\n# UNIT gpu_energy_joules joules\n"
            "# HELP gpu_energy_joules Energy.\n");
  EXPECT_EQ(family_header(kUp, Format::openmetrics), "# TYPE gpu_up gauge\n# HELP gpu_up Up.\n");
}

TEST(TextFormat, PutsLabelsInBracesAndNoneWithoutLabels) {
  const auto prefix = [](SeriesPart part, const Labels& labels) {
    std::string text;
    append_line_prefix(kUp, part, labels, text);
    return text;
  };
  EXPECT_EQ(prefix(SeriesPart::value, {{"gpu", "0"}, {"name", "a\"b"}}), R"(gpu_up{gpu="0",name="a\"b"} )");
  EXPECT_EQ(prefix(SeriesPart::sum, {}), "gpu_up_sum ");
}

}  // namespace
}  // namespace gpumeter
