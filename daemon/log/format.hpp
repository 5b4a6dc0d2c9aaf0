#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "config/config.hpp"

namespace gpumeter {

/// One thing that a log line says beside its message. Names are ours: lower case letters and '_'.
struct LogField {
  std::string_view name;
  std::string value;  ///< any bytes, escaped by the formats; empty: not known, and the line has no such field
};

/// What is logged, before it has a format.
struct LogRecord {
  Nanoseconds time;  ///< CLOCK_REALTIME
  config::LogLevel level;
  std::string_view message;
  std::span<const LogField> fields;
};

/// `ts=2026-01-02T03:04:05.678Z level=info msg="device lost" gpu=0`, quoted and escaped as Go's slog does;
/// characters that cannot be seen are escaped too. Without the line's end, as the next.
std::string to_logfmt(const LogRecord& record);

/// The same as one JSON object; bytes that are not UTF-8 become U+FFFD.
std::string to_json(const LogRecord& record);

/// The fields of a journal entry, "NAME=value": MESSAGE (with the fields in logfmt after it, since that is
/// all that journalctl shows), PRIORITY (syslog's), SYSLOG_IDENTIFIER and every field in upper case; uuid
/// and vendor, which say nothing among other services' fields, as GPU_UUID and GPU_VENDOR.
std::vector<std::string> to_journal(const LogRecord& record);

}  // namespace gpumeter
