#include "daemon/log/format.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

using std::chrono::milliseconds;

const std::vector<LogField> kFields = {
    {"gpu", "0"}, {"uuid", "GPU-1"}, {"vendor", "amd"}, {"error", "a \"b\"\nc"}};

LogRecord record(std::span<const LogField> fields = kFields) {
  return {milliseconds(1'767'312'000'007), config::LogLevel::warn, "device lost", fields};
}

TEST(LogFormat, Logfmt) {
  EXPECT_EQ(to_logfmt(record()),
            "ts=2026-01-02T00:00:00.007Z level=warn msg=\"device lost\" gpu=0 uuid=GPU-1 vendor=amd "
            "error=\"a \\\"b\\\"\\nc\"");
  EXPECT_EQ(to_logfmt({Nanoseconds(0), config::LogLevel::debug, "up", {}}),
            "ts=1970-01-01T00:00:00.000Z level=debug msg=up");
}

TEST(LogFormat, Json) {
  EXPECT_EQ(to_json(record()),
            R"({"ts":"2026-01-02T00:00:00.007Z","level":"warn","msg":"device lost","gpu":"0","uuid":"GPU-1",)"
            R"("vendor":"amd","error":"a \"b\"\u000ac"})");
  const std::vector<LogField> bytes = {{"path", "a\xff\x01"}};
  EXPECT_EQ(to_json(record(bytes)),
            "{\"ts\":\"2026-01-02T00:00:00.007Z\",\"level\":\"warn\",\"msg\":\"device lost\","
            "\"path\":\"a\ufffd\\u0001\"}");
}

TEST(LogFormat, Journal) {
  EXPECT_EQ(
      to_journal(record()),
      (std::vector<std::string>{"MESSAGE=device lost gpu=0 uuid=GPU-1 vendor=amd error=\"a \\\"b\\\"\\nc\"",
                                "PRIORITY=4", "SYSLOG_IDENTIFIER=gpumeter", "GPU=0", "GPU_UUID=GPU-1",
                                "GPU_VENDOR=amd", "ERROR=a \"b\"\\nc"}));
}

TEST(LogFormat, WhatIsNotKnownHasNoField) {
  const std::vector<LogField> fields = {{"gpu", "0"}, {"why", ""}};
  EXPECT_EQ(to_logfmt(record(fields)), "ts=2026-01-02T00:00:00.007Z level=warn msg=\"device lost\" gpu=0");
  EXPECT_EQ(to_json(record(fields)),
            R"({"ts":"2026-01-02T00:00:00.007Z","level":"warn","msg":"device lost","gpu":"0"})");
  EXPECT_EQ(to_journal(record(fields)), (std::vector<std::string>{"MESSAGE=device lost gpu=0", "PRIORITY=4",
                                                                  "SYSLOG_IDENTIFIER=gpumeter", "GPU=0"}));
}

TEST(LogFormat, JournalPriorities) {
  const auto priority = [](config::LogLevel level) {
    return to_journal({Nanoseconds(0), level, "m", {}})[1];
  };
  EXPECT_EQ(priority(config::LogLevel::debug), "PRIORITY=7");
  EXPECT_EQ(priority(config::LogLevel::info), "PRIORITY=6");
  EXPECT_EQ(priority(config::LogLevel::warn), "PRIORITY=4");
  EXPECT_EQ(priority(config::LogLevel::error), "PRIORITY=3");
}

}  // namespace
}  // namespace gpumeter
