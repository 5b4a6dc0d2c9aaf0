#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpumeter::top {

/// The characters that the terminal can show.
enum class Charset : std::uint8_t { ascii, utf8 };

/// A value; nullopt: the daemon does not have it.
using Number = std::optional<double>;

/// Returns text from outside (names of jobs, of users, of cards) as the terminal may show it. A replacement
/// (U+FFFD, or `?` in ASCII) stands for each control and format character, each combining character and each
/// invalid byte, so that no text moves the cursor, sets a colour or reverses a line. Pure.
std::string printable(std::string_view text, Charset charset);

/// Returns the columns that a printable text takes: two for East Asian wide characters and emoji.
int width_of(std::string_view text) noexcept;

/// Returns the printable text cut to at most `width` columns. A cut text ends in `~`, or in the ellipsis.
std::string cut(std::string_view text, int width, Charset charset);

/// Returns the text cut or filled with blanks to exactly `width` columns.
std::string padded(std::string_view text, int width, Charset charset, bool is_right = false);

// Values as people read them. An absent value is "-", never 0. Pure.

inline constexpr std::string_view kAbsent = "-";

/// Returns `value` / `unit` with a fixed number of decimals: number_text(412.4, 0) is "412".
std::string number_text(Number value, int decimals = 0, double unit = 1);

/// "412/450"; the part that is absent is "-"; "-" if both are.
std::string pair_text(Number value, Number of, int decimals = 0, double unit = 1);

/// "87%"
std::string percent_text(Number ratio);

/// "4.02", "12.3", "250": three digits.
std::string short_text(Number value);

/// "45s", "3m12s", "5h03m", "12d4h"
std::string age_text(Number seconds);

/// "1234", "12.3k", "4.56M": a count in at most five characters.
std::string count_text(Number value);

/// Ranges of ascending numbers: {"0","1","2","5"} is "0-2,5".
std::string ranges_text(const std::vector<std::string>& numbers);

/// A bar of exactly `width` columns for a ratio from 0 to 1.
std::string bar(double ratio, int width, Charset charset);

/// Values over time, the newest at the right end, as `height` lines of `width` columns from 0 to `most`. The
/// first line begins with `scale`, the text of `most`. A time without a value is blank; 0 is a low mark.
std::vector<std::string> plot(const std::vector<Number>& values, double most, const std::string& scale,
                              int width, int height, Charset charset);

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

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

/// Two blocks of lines next to each other: the left one is cut or filled to `width` columns.
Lines beside(Lines left, const Lines& right, int width, Charset charset);

/// The lines that fit. If some do not, the last line counts them.
Lines fitted(Lines lines, int height);

/// Joins the items by two blanks and continues on further lines, which begin with `indent` blanks, if the
/// width ends. A single item that is too long is cut.
Lines wrapped(const std::vector<Piece>& items, int width, int indent, Charset charset);

/// Breaks a sentence between words.
Lines wrapped(const std::string& sentence, Style style, int width, int indent, Charset charset);

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
  Piece note = {};  ///< a line of its own below the row; empty: none
};

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// Returns the titles and the rows as lines of at most `width` columns. Pure.
Lines laid_out(const Table& table, int width, Charset charset);

}  // namespace gpumeter::top
