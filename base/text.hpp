#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

/// Parses text from outside the process. Any thread; allocates only in functions that return a std::string.
namespace gpumeter {

/// U+FFFD, the replacement for bytes that are not UTF-8.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// One character of a text, or one invalid byte.
struct Character {
  static constexpr char32_t kNone = 0xFFFFFFFF;

  std::string_view bytes;  ///< at least one byte
  char32_t code = kNone;   ///< kNone: `bytes` is one byte that does not start a valid character

  explicit operator bool() const noexcept { return code != kNone; }
};

/// Removes the first character from a text that is not empty. UTF-8 by RFC 3629: only the shortest form, no
/// surrogates, nothing above U+10FFFF.
Character take_character(std::string_view& text) noexcept;

/// Returns the longest prefix that has at most `most` bytes and does not end within a character.
std::string_view first_bytes(std::string_view text, std::size_t most) noexcept;

/// Removes and returns the part before the first `separator`; the separator is removed too. Without a
/// separator, the function takes the whole text.
inline std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::string_view front = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(front.size() + 1, text.size()));
  return front;
}

/// Returns the text without leading and trailing blanks, tabs and line ends.
constexpr std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);  // npos + 1 is 0
}

/// Of ASCII alone, whatever the locale.
constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// C0, DEL and C1: a terminal acts on them.
constexpr bool is_control(char32_t code) noexcept { return code < ' ' || (code >= 0x7F && code < 0xA0); }

/// Returns the text as a label value. U+FFFD replaces each byte that is not UTF-8 and each character for
/// whose code `is_hidden` is true.
template <class IsHidden>
std::string readable(std::string_view text, IsHidden is_hidden) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = take_character(text);
    out += !next || is_hidden(next.code) ? kReplacement : next.bytes;
  }
  return out;
}

/// Returns the UTF-8 text unchanged if it has at most `most` bytes. Otherwise returns its start, `~` and 8
/// hexadecimal digits: FNV-1a (32 bits) of `raw`. The hash keeps texts different that differ only at their
/// ends.
std::string shortened(std::string text, std::size_t most, std::string_view raw);

/// Undoes \xNN, as systemd writes bytes in the names of units, and the kernel those below 0x20, above 0x7e
/// and the backslash in its log. Other backslashes stay.
std::string unescaped(std::string_view text);

/// Returns the text in double quotes, for messages.
inline std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

/// Removes and returns the number at the start of the text, in the syntax of std::from_chars: no blanks, no
/// '+'. Returns nullopt if the text starts with no number or `Number` cannot hold it.
template <class Number, class... Base>
std::optional<Number> take_number(std::string_view& text, Base... base) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// Parses the whole text as a number; nullopt if anything follows the number. `base` is the base of a whole
/// number (default 10) or the format of a decimal.
template <class Number, class... Base>
std::optional<Number> parse_number(std::string_view text, Base... base) noexcept {
  const std::optional<Number> number = take_number<Number>(text, base...);
  return text.empty() ? number : std::nullopt;
}

/// The names of an enum's `N` values.
template <class Enum, std::size_t N>
struct EnumNames {
  struct Row {
    Enum value;
    std::string_view name;
  };
  Row rows[N];

  constexpr const Row* begin() const noexcept { return rows; }
  constexpr const Row* end() const noexcept { return rows + N; }

  /// Returns an empty name for a value without one.
  constexpr std::string_view of(Enum value) const noexcept {
    for (const Row& row : rows) {
      if (row.value == value) return row.name;
    }
    return {};
  }

  constexpr std::optional<Enum> find(std::string_view name) const noexcept {
    for (const Row& row : rows) {
      if (row.name == name) return row.value;
    }
    return std::nullopt;
  }
};

}  // namespace gpumeter
