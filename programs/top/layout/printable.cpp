#include "programs/top/layout/printable.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace gpumeter::top {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool is_in(const std::array<Range, N>& ranges, char32_t code) noexcept {
  return std::ranges::any_of(ranges, [code](Range it) { return code >= it.first && code <= it.last; });
}

// Characters that terminals act on, that reorder a line, or whose width terminals do not agree on: C0, C1,
// soft hyphen, combining marks, Arabic and Indic signs, joiners and directions, line separators, private use,
// tags.
constexpr std::array kHidden = {
    Range{0x00, 0x1F},       Range{0x7F, 0x9F},       Range{0xAD, 0xAD},     Range{0x300, 0x36F},
    Range{0x483, 0x489},     Range{0x591, 0x5C7},     Range{0x600, 0x605},   Range{0x610, 0x61C},
    Range{0x64B, 0x65F},     Range{0x670, 0x670},     Range{0x6D6, 0x6ED},   Range{0x700, 0x74A},
    Range{0x7A6, 0x7B0},     Range{0x7EB, 0x7FD},     Range{0x816, 0x82D},   Range{0x859, 0x85B},
    Range{0x890, 0x903},     Range{0x93A, 0x957},     Range{0x981, 0xDFF},   Range{0xE31, 0xE31},
    Range{0xE34, 0xE3A},     Range{0xE47, 0xE4E},     Range{0xEB1, 0xECE},   Range{0xF18, 0xFC6},
    Range{0x102B, 0x109D},   Range{0x135D, 0x135F},   Range{0x1712, 0x1734}, Range{0x1752, 0x1773},
    Range{0x17B4, 0x17DD},   Range{0x180B, 0x180F},   Range{0x1920, 0x1CF9}, Range{0x1DC0, 0x1DFF},
    Range{0x200B, 0x200F},   Range{0x2028, 0x202E},   Range{0x2060, 0x206F}, Range{0x20D0, 0x20F0},
    Range{0x302A, 0x302F},   Range{0x3099, 0x309A},   Range{0xA66F, 0xA67D}, Range{0xA802, 0xABED},
    Range{0xD7B0, 0xD7FF},   Range{0xE000, 0xF8FF},   Range{0xFB1E, 0xFB1E}, Range{0xFE00, 0xFE0F},
    Range{0xFE20, 0xFE2F},   Range{0xFEFF, 0xFEFF},   Range{0xFFF0, 0xFFFC}, Range{0xFFFE, 0x1F2FF},
    Range{0x1F3FB, 0x1F3FF}, Range{0xE0000, 0x10FFFF}};

// East Asian Width W and F, and emoji.
constexpr std::array kWide = {
    Range{0x1100, 0x115F},  Range{0x231A, 0x231B}, Range{0x2329, 0x232A}, Range{0x23E9, 0x23F3},
    Range{0x25FD, 0x25FE},  Range{0x2614, 0x2615}, Range{0x2648, 0x2653}, Range{0x267F, 0x267F},
    Range{0x2693, 0x2693},  Range{0x26A1, 0x26A1}, Range{0x26AA, 0x26AB}, Range{0x26BD, 0x26BE},
    Range{0x26C4, 0x26C5},  Range{0x26CE, 0x26CE}, Range{0x26D4, 0x26D4}, Range{0x26EA, 0x26EA},
    Range{0x26F2, 0x26FD},  Range{0x2705, 0x2705}, Range{0x270A, 0x270B}, Range{0x2728, 0x2728},
    Range{0x274C, 0x274E},  Range{0x2753, 0x2757}, Range{0x2795, 0x2797}, Range{0x27B0, 0x27BF},
    Range{0x2B1B, 0x2B1C},  Range{0x2B50, 0x2B55}, Range{0x2E80, 0x303E}, Range{0x3041, 0xA4CF},
    Range{0xA960, 0xA97C},  Range{0xAC00, 0xD7A3}, Range{0xF900, 0xFAFF}, Range{0xFE10, 0xFE19},
    Range{0xFE30, 0xFE6F},  Range{0xFF01, 0xFF60}, Range{0xFFE0, 0xFFE6}, Range{0x1F300, 0x1FAFF},
    Range{0x20000, 0x3FFFD}};

int width_of(char32_t code) noexcept { return code >= 0x1100 && is_in(kWide, code) ? 2 : 1; }

}  // namespace

std::string printable(std::string_view text, Charset charset) {
  const bool is_ascii = charset == Charset::ascii;
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = take_character(text);
    const bool is_shown = next && !is_in(kHidden, next.code) && !(is_ascii && next.code > 0x7E);
    out += is_shown ? next.bytes : is_ascii ? "?" : kReplacement;
  }
  return out;
}

int width_of(std::string_view text) noexcept {
  int width = 0;
  while (!text.empty()) width += width_of(take_character(text).code);
  return width;
}

std::string cut(std::string_view text, int width, Charset charset) {
  if (width_of(text) <= width) return std::string(text);
  if (width <= 0) return {};
  std::string out;
  for (int left = width - 1; !text.empty();) {
    const Character next = take_character(text);
    left -= width_of(next.code);
    if (left < 0) break;
    out += next.bytes;
  }
  return out + (charset == Charset::ascii ? "~" : "\u2026");
}

std::string padded(std::string_view text, int width, Charset charset, bool is_right) {
  std::string out = cut(text, width, charset);
  const std::string blanks(static_cast<std::size_t>(std::max(0, width - width_of(out))), ' ');
  return is_right ? blanks + out : out + blanks;
}

}  // namespace gpumeter::top
