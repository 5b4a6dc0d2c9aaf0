#include "daemon/log/format.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include "daemon/log/text.hpp"

namespace gpumeter {
namespace {

/// RFC 3339 in UTC, to the millisecond.
std::string timestamp(Nanoseconds time) {
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time).count();
  const std::time_t seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> date{};
  const std::size_t size = std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  const std::string fraction = std::to_string(1000 + milliseconds % 1000);
  return std::string(date.data(), size) + "." + fraction.substr(1) + "Z";
}

void append_fields(std::string& line, std::span<const LogField> fields) {
  for (const LogField& field : fields) {
    if (field.value.empty()) continue;
    line += ' ';
    line += field.name;
    line += '=';
    line += logfmt_value(field.value);
  }
}

std::string journal_name(std::string_view name) {
  if (name == "uuid") return "GPU_UUID";
  if (name == "vendor") return "GPU_VENDOR";
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    if (c >= 'a' && c <= 'z') return static_cast<char>(c - 'a' + 'A');
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  });
  return upper;
}

/// syslog(3)'s numbers.
char priority(config::LogLevel level) noexcept {
  constexpr std::string_view kDebugInfoWarningError = "7643";
  return kDebugInfoWarningError[static_cast<std::size_t>(level)];
}

}  // namespace

std::string to_logfmt(const LogRecord& record) {
  std::string line = "ts=" + timestamp(record.time);
  line.append(" level=").append(to_string(record.level)).append(" msg=").append(logfmt_value(record.message));
  append_fields(line, record.fields);
  return line;
}

std::string to_json(const LogRecord& record) {
  std::string line = "{\"ts\":" + json_string(timestamp(record.time));
  line.append(",\"level\":").append(json_string(to_string(record.level)));
  line.append(",\"msg\":").append(json_string(record.message));
  for (const LogField& field : record.fields) {
    if (field.value.empty()) continue;
    line.append(",").append(json_string(field.name)).append(":").append(json_string(field.value));
  }
  return line + "}";
}

std::vector<std::string> to_journal(const LogRecord& record) {
  std::string message = "MESSAGE=" + escape_invisible(record.message);
  append_fields(message, record.fields);
  std::vector<std::string> entry = {std::move(message), std::string("PRIORITY=") + priority(record.level),
                                    "SYSLOG_IDENTIFIER=gpumeter"};
  for (const LogField& field : record.fields) {
    if (field.value.empty()) continue;
    entry.push_back(journal_name(field.name) + "=" + escape_invisible(field.value));
  }
  return entry;
}

}  // namespace gpumeter
