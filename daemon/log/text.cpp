#include "daemon/log/text.hpp"

#include <cstddef>

#include "base/text.hpp"

namespace gpumeter {
namespace {

/// Control characters, and those that reorder or break the text around them (Unicode's bidi controls, zero
/// widths and line separators).
bool is_invisible(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

void append_hex(std::string& text, std::string_view prefix, unsigned number, unsigned digits) {
  text += prefix;
  while (digits-- > 0) text += "0123456789abcdef"[number >> (4 * digits) & 0xfU];
}

void append_escape(std::string& text, char32_t code) {
  constexpr std::string_view kLetters = "abtnvfr";  // from \a, 7, on
  if (code >= 7 && code <= 13) {
    (text += '\\') += kLetters[code - 7];
  } else if (code < 0x80) {
    append_hex(text, "\\x", code, 2);
  } else {
    append_hex(text, "\\u", code, 4);
  }
}

}  // namespace

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
  // The backslashes of the text itself must be told from those of the escapes.
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

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const Character first = take_character(text);
    if (!first) {
      quoted += kReplacement;
    } else if (first.code == '"' || first.code == '\\') {
      (quoted += '\\') += first.bytes;
    } else if (is_invisible(first.code)) {
      append_hex(quoted, "\\u", first.code, 4);
    } else {
      quoted += first.bytes;
    }
  }
  return quoted + "\"";
}

}  // namespace gpumeter
