#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

/// Text from outside the process, in pieces. Any thread; allocates only where a std::string is returned.
namespace gpumeter {

/// U+FFFD, which replaces bytes that are not UTF-8.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// One character of a text.
struct Character {
  static constexpr char32_t kNone = 0xFFFFFFFF;

  std::string_view bytes;  ///< at least one
  char32_t code = kNone;   ///< kNone: `bytes` is one byte that does not start a character

  explicit operator bool() const noexcept { return code != kNone; }
};

/// Takes the first character off a text that is not empty. UTF-8 by RFC 3629: the shortest form only, no
/// surrogates, nothing above U+10FFFF.
Character take_character(std::string_view& text) noexcept;

/// The longest start of the text that has at most `most` bytes and does not end within a character.
std::string_view first_bytes(std::string_view text, std::size_t most) noexcept;

/// Takes the part before the first `separator`, and the separator, off the front of the text; the whole text
/// if it has no separator.
inline std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::string_view front = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(front.size() + 1, text.size()));
  return front;
}

/// The text without the blanks, tabs and line ends around it.
constexpr std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);  // npos + 1 is 0
}

/// The text as a label value: U+FFFD in place of each byte that is not UTF-8 and of each character for whose
/// code `is_hidden` is true.
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

/// The UTF-8 text if it has at most `most` bytes. Otherwise its start, `~` and 8 hexadecimal digits: FNV-1a
/// (32 bits) of `raw`, so that texts that differ only at their ends stay different.
std::string shortened(std::string text, std::size_t most, std::string_view raw);

/// The text in double quotes, for messages.
inline std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }

/// Takes the number at the start of the text off its front, as std::from_chars reads it: no blanks, no '+'.
/// nullopt if there is none, or if `Number` cannot hold it.
template <class Number, class... Base>
std::optional<Number> take_number(std::string_view& text, Base... base) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// The number that is the whole text. `base`: of a whole number (10 unless given), or the format of a
/// decimal.
template <class Number, class... Base>
std::optional<Number> parse_number(std::string_view text, Base... base) noexcept {
  const std::optional<Number> number = take_number<Number>(text, base...);
  return text.empty() ? number : std::nullopt;
}

}  // namespace gpumeter
