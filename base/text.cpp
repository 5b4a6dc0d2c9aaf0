#include "base/text.hpp"

#include <array>
#include <cstdint>

namespace gpumeter {
namespace {

constexpr std::size_t kHashDigits = 8;

char32_t byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<unsigned char>(text[at]);
}

bool is_continuation(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// Decodes one character from the first `length` bytes of the text.
char32_t code_of(std::string_view text, std::size_t length) noexcept {
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  char32_t code = byte_at(text, 0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return Character::kNone;
    code = code << 6U | (byte_at(text, i) & 0x3FU);
  }
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < kLeast[length] || code > 0x10FFFF || is_surrogate ? Character::kNone : code;
}

// Offset basis and prime of draft-eastlake-fnv.
std::string fnv1a_digits(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  std::string digits(kHashDigits, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4) {
    *digit = "0123456789abcdef"[hash & 15];
  }
  return digits;
}

}  // namespace

Character take_character(std::string_view& text) noexcept {
  const char32_t lead = byte_at(text, 0);
  std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t code = lead;
  if (length > 1) {
    const bool can_be = lead >= 0xC2 && lead <= 0xF4 && text.size() >= length;
    code = can_be ? code_of(text, length) : Character::kNone;
  }
  if (code == Character::kNone) length = 1;
  const Character character{text.substr(0, length), code};
  text.remove_prefix(length);
  return character;
}

std::string_view first_bytes(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  while (most > 0 && is_continuation(text[most])) --most;
  return text.substr(0, most);
}

std::string unescaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const bool may_be_escape = text.size() >= 4 && text.starts_with("\\x");
    const auto byte = may_be_escape ? parse_number<unsigned char>(text.substr(2, 2), 16) : std::nullopt;
    out += byte ? static_cast<char>(*byte) : text.front();
    text.remove_prefix(byte ? 4 : 1);
  }
  return out;
}

std::string shortened(std::string text, std::size_t most, std::string_view raw) {
  if (text.size() <= most) return text;
  text.resize(first_bytes(text, most - 1 - kHashDigits).size());
  return text + '~' + fnv1a_digits(raw);
}

}  // namespace gpumeter
