#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpumeter::top {

/// The characters that the terminal can show.
enum class Charset : std::uint8_t { ascii, utf8 };

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

}  // namespace gpumeter::top
