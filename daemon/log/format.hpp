#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/config.hpp"

namespace gpumeter {

/// One thing that a log line reports beside its message. Names are ours: lower case letters and '_'.
struct LogField {
  std::string_view name;
  std::string value;  ///< any bytes, escaped by the formats; empty: not known, and the line has no such field
};

/// What is logged, without its time, which spdlog's pattern adds.
struct LogRecord {
  config::LogLevel level;
  std::string_view message;
  std::span<const LogField> fields;
};

/// `level=info msg="device lost" gpu=0`, quoted and escaped as Go's slog does; characters that cannot be seen
/// are escaped too.
std::string to_logfmt(const LogRecord& record);

/// The same as the rest of a JSON object, without its opening brace, in ASCII; bytes that are not UTF-8
/// become U+FFFD.
std::string to_json(const LogRecord& record);

/// A journal entry: fields "NAME=value", each with a NUL at its end. MESSAGE (with the fields in logfmt after
/// it, since journalctl shows nothing else), PRIORITY (syslog's), SYSLOG_IDENTIFIER and every field in upper
/// case; uuid and vendor, which would mean nothing among other services' fields, as GPU_UUID and GPU_VENDOR.
std::string to_journal(const LogRecord& record);

/// The text with escapes for what cannot be seen: \n, \t, \x1b, \u202e; bytes that are not UTF-8 as \xff. No
/// logged text can then begin a line of its own or control a terminal.
std::string escape_invisible(std::string_view text);

/// A value in logfmt: as it is, or in quotes if it is empty or has a space, '=', '"' or anything that needs
/// an escape.
std::string logfmt_value(std::string_view text);

}  // namespace gpumeter
