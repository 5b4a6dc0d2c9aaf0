#include "exporter/text/escaped_text.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gpumeter
