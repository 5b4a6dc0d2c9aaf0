#include "daemon/log/format.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "exporter/json/scalars.hpp"

namespace gpumeter {
namespace {

/// True for control characters and for characters that reorder or break the surrounding text: Unicode's bidi
/// controls, zero widths and line separators.
bool is_invisible(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

void append_hex(std::string& text, std::string_view prefix, unsigned number, unsigned digits) {
  text += prefix;
  while (digits-- > 0) text += "0123456789abcdef"[number >> (4 * digits) & 0xfU];
}

void append_escape(std::string& text, char32_t code) {
  constexpr std::string_view kLetters = "abtnvfr";  // from \a (7)
  if (code >= 7 && code <= 13) {
    (text += '\\') += kLetters[code - 7];
  } else if (code < 0x80) {
    append_hex(text, "\\x", code, 2);
  } else {
    append_hex(text, "\\u", code, 4);
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

/// Returns the priority number of syslog(3).
char priority(LogLevel level) noexcept {
  constexpr std::string_view kDebugInfoWarningError = "7643";
  return kDebugInfoWarningError[static_cast<std::size_t>(level)];
}

/// Calls `add` for each field that has a value.
template <class Add>
void each_known(const LogRecord& record, Add add) {
  for (const LogField& field : record.fields) {
    if (!field.value.empty()) add(field);
  }
}

std::string fields_in_logfmt(const LogRecord& record) {
  std::string text;
  each_known(record, [&](const LogField& field) {
    text.append(" ").append(field.name).append("=").append(logfmt_value(field.value));
  });
  return text;
}

}  // namespace

std::string to_logfmt(const LogRecord& record) {
  return "level=" + std::string(to_string(record.level)) + " msg=" + logfmt_value(record.message) +
         fields_in_logfmt(record);
}

std::string to_json(const LogRecord& record) {
  std::string text =
      "\"level\":" + json_quoted(to_string(record.level)) + ",\"msg\":" + json_quoted(record.message);
  each_known(record, [&](const LogField& field) {
    text.append(",").append(json_quoted(field.name)).append(":").append(json_quoted(field.value));
  });
  return text + "}";
}

std::string to_journal(const LogRecord& record) {
  std::string entry = "MESSAGE=" + escape_invisible(record.message) + fields_in_logfmt(record) + '\0';
  entry.append("PRIORITY=") += priority(record.level);
  entry.append(1, '\0').append("SYSLOG_IDENTIFIER=gpumeter").append(1, '\0');
  each_known(record, [&](const LogField& field) {
    entry.append(journal_name(field.name)).append("=").append(escape_invisible(field.value)).append(1, '\0');
  });
  return entry;
}

std::string escape_invisible(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const Character first = take_character(text);
    if (!first) {
      append_hex(escaped, "\\x", static_cast<unsigned char>(first.bytes.front()), 2);
    } else if (is_invisible(first.code)) {
      append_escape(escaped, first.code);
    } else {
      escaped += first.bytes;
    }
  }
  return escaped;
}

std::string logfmt_value(std::string_view text) {
  std::string escaped = escape_invisible(text);
  const bool plain = !text.empty() && escaped == text && text.find_first_of(" =\"") == std::string_view::npos;
  if (plain) return escaped;
  // Backslashes of the text itself are escaped, to distinguish them from those of the escapes.
  std::string quoted = "\"";
  std::string_view rest = text;
  for (std::size_t special = 0; special != std::string_view::npos;) {
    special = rest.find_first_of("\"\\");
    quoted += escape_invisible(rest.substr(0, special));
    if (special == std::string_view::npos) break;
    (quoted += '\\') += rest[special];
    rest.remove_prefix(special + 1);
  }
  return quoted + "\"";
}

}  // namespace gpumeter
