#include "daemon/log/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace gpumeter {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  ///< 0: what stands there is no UTF-8
};

/// The first character of a text that is not empty. Overlong forms, surrogates and what is beyond Unicode
/// are no UTF-8.
Character decode(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kLeast[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? Character{code, bytes} : Character{};
}

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
    const Character first = decode(text);
    const std::size_t taken = std::max<std::size_t>(first.bytes, 1);
    if (first.bytes == 0) {
      append_hex(escaped, "\\x", static_cast<unsigned char>(text.front()), 2);
    } else if (is_invisible(first.code)) {
      append_escape(escaped, first.code);
    } else {
      escaped += text.substr(0, taken);
    }
    text.remove_prefix(taken);
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
    const Character first = decode(text);
    const std::size_t taken = std::max<std::size_t>(first.bytes, 1);
    if (first.bytes == 0) {
      quoted += "\xef\xbf\xbd";
    } else if (first.code == '"' || first.code == '\\') {
      (quoted += '\\') += text.front();
    } else if (is_invisible(first.code)) {
      append_hex(quoted, "\\u", first.code, 4);
    } else {
      quoted += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return quoted + "\"";
}

}  // namespace gpumeter
