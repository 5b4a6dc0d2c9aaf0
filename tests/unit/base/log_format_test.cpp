#include <gtest/gtest.h>

#include <vector>

#include "base/json/scalars.hpp"
#include "base/log.hpp"

namespace gpumeter {
namespace {

const std::vector<LogField> kFields = {
    {"gpu", "0"}, {"uuid", "GPU-1"}, {"vendor", "amd"}, {"error", "a \"b\"\nc"}};

LogRecord record(std::span<const LogField> fields = kFields) {
  return {LogLevel::warn, "device lost", fields};
}

/// The fields of a journal entry.
std::vector<std::string> fields(std::string_view entry) {
  std::vector<std::string> found;
  while (!entry.empty()) {
    found.emplace_back(entry.substr(0, entry.find('\0')));
    entry.remove_prefix(found.back().size() + 1);
  }
  return found;
}

TEST(LogFormat, Logfmt) {
  EXPECT_EQ(to_logfmt(record()),
            "level=warn msg=\"device lost\" gpu=0 uuid=GPU-1 vendor=amd "
            "error=\"a \\\"b\\\"\\nc\"");
  EXPECT_EQ(to_logfmt({LogLevel::debug, "up", {}}), "level=debug msg=up");
}

TEST(LogFormat, Json) {
  EXPECT_EQ(to_json(record()), R"("level":"warn","msg":"device lost","gpu":"0","uuid":"GPU-1",)"
                               R"("vendor":"amd","error":"a \"b\"\nc"})");
  const std::vector<LogField> bytes = {{"path", "a\xff\x01"}};
  EXPECT_EQ(to_json(record(bytes)),
            "\"level\":\"warn\",\"msg\":\"device lost\","
            "\"path\":\"a\\ufffd\\u0001\"}");
}

TEST(LogFormat, Journal) {
  EXPECT_EQ(
      fields(to_journal(record())),
      (std::vector<std::string>{"MESSAGE=device lost gpu=0 uuid=GPU-1 vendor=amd error=\"a \\\"b\\\"\\nc\"",
                                "PRIORITY=4", "SYSLOG_IDENTIFIER=gpumeter", "GPU=0", "GPU_UUID=GPU-1",
                                "GPU_VENDOR=amd", "ERROR=a \"b\"\\nc"}));
}

TEST(LogFormat, WhatIsNotKnownHasNoField) {
  const std::vector<LogField> known = {{"gpu", "0"}, {"why", ""}};
  EXPECT_EQ(to_logfmt(record(known)), "level=warn msg=\"device lost\" gpu=0");
  EXPECT_EQ(to_json(record(known)), R"("level":"warn","msg":"device lost","gpu":"0"})");
  EXPECT_EQ(fields(to_journal(record(known))),
            (std::vector<std::string>{"MESSAGE=device lost gpu=0", "PRIORITY=4", "SYSLOG_IDENTIFIER=gpumeter",
                                      "GPU=0"}));
}

TEST(LogFormat, JournalPriorities) {
  const auto priority = [](LogLevel level) { return fields(to_journal({level, "m", {}}))[1]; };
  EXPECT_EQ(priority(LogLevel::debug), "PRIORITY=7");
  EXPECT_EQ(priority(LogLevel::info), "PRIORITY=6");
  EXPECT_EQ(priority(LogLevel::warn), "PRIORITY=4");
  EXPECT_EQ(priority(LogLevel::error), "PRIORITY=3");
}

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
  EXPECT_EQ(json_quoted(""), "\"\"");
  EXPECT_EQ(json_quoted("a \"b\" \\ ä𝄞"), "\"a \\\"b\\\" \\\\ \\u00e4\\ud834\\udd1e\"");
  EXPECT_EQ(json_quoted("\n\x1b\u202e"), "\"\\n\\u001b\\u202e\"");
  EXPECT_EQ(json_quoted("a\xff\xc3("), "\"a\\ufffd\\ufffd(\"");
}

}  // namespace
}  // namespace gpumeter
