#include "collectors/jobs/wire/label_text.hpp"

#include <algorithm>

#include "base/fnv1a.hpp"
#include "base/text.hpp"

namespace gpumeter::jobs {
namespace {

bool prints(char32_t code) noexcept {
  struct Range {
    char32_t first, last;
  };
  // C0, DEL and C1; zero-width and direction marks; line separators and embeddings; isolates; byte order
  // mark.
  constexpr Range kUnprintable[] = {
      {0, 0x1F},        {0x7F, 0x9F},     {0x200B, 0x200F}, {0x2028, 0x202E},
      {0x2066, 0x2069}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0x110000, Character::kNone}};
  return std::ranges::none_of(kUnprintable,
                              [=](const Range& range) { return code >= range.first && code <= range.last; });
}

/// Takes the characters off `raw` that fit into `most` bytes.
std::string take_printable(std::string_view& raw, std::size_t most) {
  std::string text;
  text.reserve(std::min(raw.size(), most));
  while (!raw.empty()) {
    std::string_view rest = raw;
    const Character next = take_character(rest);
    const std::string_view shown = prints(next.code) ? next.bytes : kReplacement;
    if (text.size() + shown.size() > most) break;
    text += shown;
    raw = rest;
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
