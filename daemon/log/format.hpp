#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/enum_names.hpp"

namespace gpumeter {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
inline constexpr EnumNames<LogLevel, 4> kLogLevelNames = {{{LogLevel::debug, "debug"},
                                                           {LogLevel::info, "info"},
                                                           {LogLevel::warn, "warn"},
                                                           {LogLevel::error, "error"}}};
constexpr const auto& names_of(LogLevel) noexcept { return kLogLevelNames; }
constexpr std::string_view to_string(LogLevel level) noexcept { return kLogLevelNames.of(level); }

/// One field of a log line in addition to its message. The code chooses the names: lower case letters and
/// '_'.
struct LogField {
  std::string_view name;
  std::string value;  ///< any bytes, escaped by the formats; empty: unknown, and the line omits the field
};

/// A log record without its time, which spdlog's pattern adds.
struct LogRecord {
  LogLevel level;
  std::string_view message;
  std::span<const LogField> fields;
};

/// Returns `level=info msg="device lost" gpu=0`, quoted and escaped as in Go's slog. Invisible characters are
/// escaped too.
std::string to_logfmt(const LogRecord& record);

/// Returns the record as the rest of a JSON object, without its opening brace, in ASCII. Bytes that are not
/// UTF-8 become U+FFFD.
std::string to_json(const LogRecord& record);

/// Returns a journal entry: fields "NAME=value", each with a NUL at its end. The fields are MESSAGE, PRIORITY
/// (syslog's), SYSLOG_IDENTIFIER and every field of the record in upper case. MESSAGE ends with the fields in
/// logfmt, because journalctl shows only MESSAGE. The names uuid and vendor become GPU_UUID and GPU_VENDOR,
/// because they are ambiguous among other services' fields.
std::string to_journal(const LogRecord& record);

/// Returns the text with escapes for invisible characters: \n, \t, \x1b, \u202e; bytes that are not UTF-8
/// become \xff. Logged text can therefore neither begin a line of its own nor control a terminal.
std::string escape_invisible(std::string_view text);

/// Returns a value in logfmt, unchanged or in quotes if it is empty or contains a space, '=', '"' or a
/// character that needs an escape.
std::string logfmt_value(std::string_view text);

}  // namespace gpumeter
