#include "collectors/jobs/wire/label_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/fnv1a.hpp"

namespace gpumeter::jobs {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Character {
  std::size_t bytes;   ///< taken from the text, at least 1
  std::uint32_t code;  ///< kInvalid: these bytes are no character
};
constexpr std::uint32_t kInvalid = 0xFFFFFFFF;

std::uint32_t byte_at(std::string_view text, std::size_t at) noexcept {
  return static_cast<unsigned char>(text[at]);
}

/// RFC 3629: the shortest form only, no surrogates, up to U+10FFFF.
Character first_character(std::string_view text) noexcept {
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const std::uint32_t lead = byte_at(text, 0);
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {1, kInvalid};
  std::uint32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return {1, kInvalid};
    code = code << 6U | (byte_at(text, i) & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[bytes] || surrogate || code > 0x10FFFF) return {1, kInvalid};
  return {bytes, code};
}

bool prints(std::uint32_t code) noexcept {
  struct Range {
    std::uint32_t first, last;
  };
  // C0, DEL and C1; zero-width and direction marks; line separators and embeddings; isolates; byte order
  // mark.
  constexpr Range kUnprintable[] = {{0, 0x1F},        {0x7F, 0x9F},        {0x200B, 0x200F},
                                    {0x2028, 0x202E}, {0x2066, 0x2069},    {0xFEFF, 0xFEFF},
                                    {0xFFF9, 0xFFFB}, {0x110000, kInvalid}};
  return std::ranges::none_of(kUnprintable,
                              [=](const Range& range) { return code >= range.first && code <= range.last; });
}

/// Takes the characters off `raw` that fit into `most` bytes.
std::string take_printable(std::string_view& raw, std::size_t most) {
  std::string text;
  text.reserve(std::min(raw.size(), most));
  while (!raw.empty()) {
    const Character character = first_character(raw);
    const std::string_view shown = prints(character.code) ? raw.substr(0, character.bytes) : kReplacement;
    if (text.size() + shown.size() > most) break;
    text += shown;
    raw.remove_prefix(character.bytes);
  }
  return text;
}

}  // namespace

std::string label_text(std::string_view raw) { return take_printable(raw, kMaxLabelBytes); }

std::string run_name_text(std::string_view raw) {
  std::string_view rest = raw;
  std::string text = take_printable(rest, kMaxLabelBytes);
  if (rest.empty()) return text;
  const std::string tail = "~" + fnv1a_digits(raw);
  rest = raw;
  return take_printable(rest, kMaxLabelBytes - tail.size()) + tail;
}

}  // namespace gpumeter::jobs
