#pragma once

#include <optional>
#include <string>
#include <vector>

#include "programs/top/layout/line.hpp"

namespace gpumeter::top {

struct Column {
  std::string title;
  int least;     ///< columns below which its text is useless
  int most;      ///< columns above which it gains nothing
  int priority;  ///< if the line is too narrow, the lowest one is dropped first; the highest grows first
  bool is_right = false;
};

struct Cell {
  std::string text;
  Style style = Style::plain;
  std::optional<double> ratio = std::nullopt;  ///< drawn as a bar as wide as the column, instead of the text
};

struct Row {
  std::vector<Cell> cells;  ///< as many as the table has columns
  bool is_selected = false;
};

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// Returns the titles and the rows as lines of at most `width` columns. Pure.
Lines laid_out(const Table& table, int width, Charset charset);

}  // namespace gpumeter::top
