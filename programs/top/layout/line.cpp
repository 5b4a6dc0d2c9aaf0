#include "programs/top/layout/line.hpp"

#include <string_view>

#include "base/text.hpp"

namespace gpumeter::top {
namespace {

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

}  // namespace

Lines wrapped(const std::vector<Piece>& items, int width, int indent, Charset charset) {
  return filled(items, "  ", width, indent, charset);
}

Lines wrapped(const std::string& sentence, Style style, int width, int indent, Charset charset) {
  std::vector<Piece> words;
  for (std::string_view rest = trimmed(sentence); !rest.empty();)
    words.push_back({std::string(take_until(rest, ' ')), style});
  return filled(words, " ", width, indent, charset);
}

}  // namespace gpumeter::top
