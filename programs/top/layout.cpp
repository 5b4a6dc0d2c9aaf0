#include "programs/top/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string_view>

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

int columns_of(char32_t code) noexcept { return code >= 0x1100 && is_in(kWide, code) ? 2 : 1; }

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// Numbers of an hour and more: seconds no longer matter.
std::string long_age_text(long minutes) {
  const long hours = minutes / 60;
  if (hours < 24) return print("%ldh%02ldm", hours, minutes % 60);
  return print("%ldd%ldh", hours / 24, hours % 24);
}

Lines filled(const std::vector<Piece>& items, const std::string& gap, int width, int indent,
             Charset charset) {
  const std::string begin(static_cast<std::size_t>(indent), ' ');
  Lines lines = {Line(begin)};
  int used = indent;
  for (const Piece& item : items) {
    const bool is_first = used == indent;
    const int needed = width_of(item.text) + (is_first ? 0 : width_of(gap));
    if (!is_first && used + needed > width) {
      lines.emplace_back(begin);
      used = indent;
    }
    if (used > indent) lines.back().add(gap), used += width_of(gap);
    lines.back().add(cut(item.text, width - used, charset), item.style);
    used += width_of(lines.back().pieces.back().text);
  }
  return lines;
}

constexpr int kGap = 1;
const std::string kNoteIndent = "    ";

Number mean_of(const std::vector<Number>& values, std::size_t begin, std::size_t end) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (values[i]) sum += *values[i], ++count;
  }
  return count > 0 ? Number(sum / count) : std::nullopt;
}

/// A column that is shown, with its width.
struct Place {
  std::size_t column;
  int width;
  int wanted;
};

int content_width(const Table& table, std::size_t column) {
  int width = width_of(table.columns[column].title);
  for (const Row& row : table.rows) {
    const Cell& cell = row.cells[column];
    width = std::max(width, cell.ratio ? table.columns[column].most : width_of(cell.text));
  }
  return width;
}

int total(const std::vector<Place>& places) {
  const int gaps = kGap * (static_cast<int>(places.size()) - 1);
  return std::accumulate(places.begin(), places.end(), gaps,
                         [](int sum, const Place& it) { return sum + it.width; });
}

std::vector<Place> places_of(const Table& table, int width) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const int wanted = std::max(column.least, std::min(column.most, content_width(table, i)));
    places.push_back({i, column.least, wanted});
  }
  const auto priority = [&](const Place& it) { return table.columns[it.column].priority; };
  while (places.size() > 1 && total(places) > width) {
    places.erase(std::ranges::min_element(places, {}, priority));
  }
  std::vector<Place*> by_priority;
  for (Place& place : places) by_priority.push_back(&place);
  std::ranges::stable_sort(by_priority, std::ranges::greater(),
                           [&](const Place* it) { return priority(*it); });
  for (Place* place : by_priority)
    place->width += std::clamp(width - total(places), 0, place->wanted - place->width);
  return places;
}

Line titles_of(const Table& table, const std::vector<Place>& places, Charset charset) {
  std::string text;
  for (const Place& place : places) {
    const Column& column = table.columns[place.column];
    if (!text.empty()) text += std::string(kGap, ' ');
    text += padded(column.title, place.width, charset, column.is_right);
  }
  return Line(text, Style::title);
}

Line line_of(const Table& table, const Row& row, const std::vector<Place>& places, Charset charset) {
  Line line;
  line.is_selected = row.is_selected;
  for (const Place& place : places) {
    if (!line.pieces.empty()) line.add(std::string(kGap, ' '));
    const Cell& cell = row.cells[place.column];
    line.add(cell.ratio ? bar(*cell.ratio, place.width, charset)
                        : padded(cell.text, place.width, charset, table.columns[place.column].is_right),
             cell.style);
  }
  return line;
}

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
  while (!text.empty()) width += columns_of(take_character(text).code);
  return width;
}

std::string cut(std::string_view text, int width, Charset charset) {
  if (width_of(text) <= width) return std::string(text);
  if (width <= 0) return {};
  std::string out;
  for (int left = width - 1; !text.empty();) {
    const Character next = take_character(text);
    left -= columns_of(next.code);
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

std::string number_text(Number value, int decimals, double unit) {
  if (!value) return std::string(kAbsent);
  const double shown = *value / unit;
  // Avoids "-0".
  return print("%.*f", decimals, std::abs(shown) < 0.5 * std::pow(10, -decimals) ? 0.0 : shown);
}

std::string pair_text(Number value, Number of, int decimals, double unit) {
  if (!value && !of) return std::string(kAbsent);
  return number_text(value, decimals, unit) + "/" + number_text(of, decimals, unit);
}

std::string percent_text(Number ratio) {
  return ratio ? number_text(*ratio * 100) + "%" : std::string(kAbsent);
}

std::string short_text(Number value) {
  if (!value) return std::string(kAbsent);
  const double size = std::abs(*value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return print("%.2e", *value);
  return number_text(value, size < 1e-1 ? 4 : size < 10 ? 2 : size < 100 ? 1 : 0);
}

std::string age_text(Number seconds) {
  if (!seconds) return std::string(kAbsent);
  const long whole = std::lround(std::clamp(*seconds, 0.0, 1e12));
  if (whole < 60) return print("%lds", whole);
  if (whole < 3600) return print("%ldm%02lds", whole / 60, whole % 60);
  return long_age_text(whole / 60);
}

std::string count_text(Number value) {
  constexpr std::array kUnits = {"", "k", "M", "G", "T", "P"};
  if (!value) return std::string(kAbsent);
  double shown = *value;
  std::size_t unit = 0;
  for (double limit = 99999.5; unit + 1 < kUnits.size() && shown >= limit; limit = 999.5, ++unit)
    shown /= 1000;
  return number_text(shown, unit == 0 || shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2) + kUnits[unit];
}

std::string ranges_text(const std::vector<std::string>& numbers) {
  std::string text;
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t last = at;
    const auto value = [&](std::size_t i) { return parse_number<long>(numbers[i]).value_or(-1); };
    while (last + 1 < numbers.size() && value(last + 1) == value(last) + 1) ++last;
    text += (text.empty() ? "" : ",") + numbers[at];
    if (last > at) text += (last > at + 1 ? "-" : ",") + numbers[last];
    at = last + 1;
  }
  return text.empty() ? std::string(kAbsent) : text;
}

std::string bar(double ratio, int width, Charset charset) {
  constexpr std::array kEighths = {"", "\u258F", "\u258E", "\u258D", "\u258C", "\u258B", "\u258A", "\u2589"};
  const int steps = charset == Charset::ascii ? 1 : 8;
  const int filled = static_cast<int>(std::lround(std::clamp(ratio, 0.0, 1.0) * width * steps));
  std::string text;
  for (int i = 0; i < filled / steps; ++i) text += charset == Charset::ascii ? "|" : "\u2588";
  if (filled % steps > 0) text += kEighths[static_cast<std::size_t>(filled % steps)];
  return padded(text, width, charset);
}

std::vector<std::string> plot(const std::vector<Number>& values, double most, const std::string& scale,
                              int width, int height, Charset charset) {
  constexpr std::array kLevels = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                  "\u2585", "\u2586", "\u2587", "\u2588"};
  constexpr std::array kAsciiLevels = {" ", ".", ".", ".", ":", ":", ":", "|", "|"};
  constexpr int kScale = 6;
  std::vector<std::string> lines(static_cast<std::size_t>(height), std::string(kScale, ' '));
  if (height > 0) lines.front() = padded(scale, kScale - 1, charset, true) + " ";
  const auto columns = static_cast<std::size_t>(std::max(0, width - kScale));
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t begin = column * values.size() / columns;
    const std::size_t end = std::max(begin + 1, (column + 1) * values.size() / columns);
    const Number mean = mean_of(values, begin, std::min(end, values.size()));
    const double ratio = std::clamp(mean.value_or(0) / std::max(most, 1e-9), 0.0, 1.0);
    const int eighths = mean ? std::max(1, static_cast<int>(std::lround(ratio * height * 8))) : 0;
    for (int row = 0; row < height; ++row) {
      const int level = std::clamp(eighths - 8 * (height - 1 - row), 0, 8);
      const auto& levels = charset == Charset::ascii ? kAsciiLevels : kLevels;
      lines[static_cast<std::size_t>(row)] += levels[static_cast<std::size_t>(level)];
    }
  }
  return lines;
}

Lines beside(Lines left, const Lines& right, int width, Charset charset) {
  left.resize(std::max(left.size(), right.size()));
  for (std::size_t i = 0; i < right.size(); ++i) {
    Line& line = left[i];
    int used = 0;
    for (Piece& piece : line.pieces) {
      piece.text = cut(piece.text, std::max(0, width - used), charset);
      used += width_of(piece.text);
    }
    line.add(std::string(static_cast<std::size_t>(std::max(0, width - used)), ' '));
    for (const Piece& piece : right[i].pieces) line.pieces.push_back(piece);
  }
  return left;
}

Lines fitted(Lines lines, int height) {
  const auto room = static_cast<std::size_t>(std::max(0, height));
  if (lines.size() <= room || room == 0) {
    lines.resize(std::min(lines.size(), room));
    return lines;
  }
  const std::size_t hidden = lines.size() - room + 1;
  lines.resize(room - 1);
  lines.emplace_back("and " + std::to_string(hidden) + " more", Style::dim);
  return lines;
}

Lines wrapped(const std::vector<Piece>& items, int width, int indent, Charset charset) {
  return filled(items, "  ", width, indent, charset);
}

Lines wrapped(const std::string& sentence, Style style, int width, int indent, Charset charset) {
  std::vector<Piece> words;
  for (std::string_view rest = trimmed(sentence); !rest.empty();)
    words.push_back({std::string(take_until(rest, ' ')), style});
  return filled(words, " ", width, indent, charset);
}

Lines laid_out(const Table& table, int width, Charset charset) {
  const std::vector<Place> places = places_of(table, width);
  Lines lines = {titles_of(table, places, charset)};
  for (const Row& row : table.rows) {
    lines.push_back(line_of(table, row, places, charset));
    if (!row.note.text.empty())
      lines.emplace_back(cut(kNoteIndent + row.note.text, width, charset), row.note.style);
  }
  return lines;
}

}  // namespace gpumeter::top
