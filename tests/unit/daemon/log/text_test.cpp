#include "daemon/log/text.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

TEST(LogfmtValue, StandsAsItIsWhereThatIsClear) {
  EXPECT_EQ(logfmt_value("GPU-1"), "GPU-1");
  EXPECT_EQ(logfmt_value("C:\\x"), "C:\\x");
  EXPECT_EQ(logfmt_value("größer"), "größer");
}

TEST(LogfmtValue, IsQuotedElse) {
  EXPECT_EQ(logfmt_value(""), "\"\"");
  EXPECT_EQ(logfmt_value("device lost"), "\"device lost\"");
  EXPECT_EQ(logfmt_value("a=b"), "\"a=b\"");
  EXPECT_EQ(logfmt_value("say \"no\" \\o/"), "\"say \\\"no\\\" \\\\o/\"");
}

TEST(LogfmtValue, CannotBeginALineOrRuleATerminal) {
  EXPECT_EQ(logfmt_value("a\nlevel=error"), "\"a\\nlevel=error\"");
  EXPECT_EQ(logfmt_value("\x1b[2J"), "\"\\x1b[2J\"");
  EXPECT_EQ(logfmt_value("\a\b\t\v\f\r\x7f"), "\"\\a\\b\\t\\v\\f\\r\\x7f\"");
  EXPECT_EQ(logfmt_value(std::string("a\0b", 3)), "\"a\\x00b\"");
  EXPECT_EQ(logfmt_value("a\\\nb"), "\"a\\\\\\nb\"");
}

TEST(EscapeInvisible, ShowsWhatUnicodeHides) {
  EXPECT_EQ(escape_invisible("a\u202eb\u200bc\u2028d\ufeffe\u0085f\u00ad"),
            "a\\u202eb\\u200bc\\u2028d\\ufeffe\\u0085f\\u00ad");
  EXPECT_EQ(escape_invisible("ä€𝄞\u00a0"), "ä€𝄞\u00a0");
}

TEST(EscapeInvisible, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(escape_invisible("\x80"), "\\x80");
  EXPECT_EQ(escape_invisible("\xc3"), "\\xc3");
  EXPECT_EQ(escape_invisible("\xc3("), "\\xc3(");
  EXPECT_EQ(escape_invisible("\xc0\xaf"), "\\xc0\\xaf");                    // overlong '/'
  EXPECT_EQ(escape_invisible("\xe0\x80\x80"), "\\xe0\\x80\\x80");           // overlong NUL
  EXPECT_EQ(escape_invisible("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(escape_invisible("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(escape_invisible("\xff\xc3\xa4"), "\\xff\u00e4");
}

TEST(JsonString, EscapesWhatJsonAndEyesCannotTake) {
  EXPECT_EQ(json_string(""), "\"\"");
  EXPECT_EQ(json_string("a \"b\" \\ ä€𝄞"), "\"a \\\"b\\\" \\\\ ä€𝄞\"");
  EXPECT_EQ(json_string("\n\x1b\u202e"), "\"\\u000a\\u001b\\u202e\"");
  EXPECT_EQ(json_string("a\xff\xc3("), "\"a\ufffd\ufffd(\"");
}

}  // namespace
}  // namespace gpumeter
