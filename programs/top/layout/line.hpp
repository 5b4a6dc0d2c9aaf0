#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "programs/top/layout/printable.hpp"

namespace gpumeter::top {

enum class Style : std::uint8_t { plain, dim, bold, title, good, warning, bad };

/// A part of a line in one style.
struct Piece {
  std::string text;
  Style style = Style::plain;
};

/// A line of the screen.
struct Line {
  std::vector<Piece> pieces;
  bool is_selected = false;

  Line() = default;
  explicit Line(std::string text, Style style = Style::plain) { add(std::move(text), style); }
  void add(std::string text, Style style = Style::plain) { pieces.push_back({std::move(text), style}); }

  std::string text() const {
    std::string all;
    for (const Piece& piece : pieces) all += piece.text;
    return all;
  }
};
using Lines = std::vector<Line>;

/// Joins the items by two blanks and continues on further lines, which begin with `indent` blanks, if the
/// width ends. A single item that is too long is cut.
Lines wrapped(const std::vector<Piece>& items, int width, int indent, Charset charset);

/// Breaks a sentence between words.
Lines wrapped(const std::string& sentence, Style style, int width, int indent, Charset charset);

}  // namespace gpumeter::top
