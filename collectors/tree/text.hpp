#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

/// Parsers of the texts that drivers write into sysfs. They allocate nothing and accept any bytes; a result
/// is finite.
namespace gpumeter::tree {

/// The number at the start of a text: "850", "-12.5", "850 W", and devfreq's `load` "37@800000000Hz".
/// nullopt if the text does not start with a number, or if a letter or a dot follows at once ("12a",
/// "1.2.3").
std::optional<double> leading_number(std::string_view text) noexcept;

/// The word that a driver marks with brackets ("low [auto] high" -> "auto"), or the whole text without any.
std::string_view chosen_word(std::string_view text) noexcept;

/// True if the chosen word is one of `words`, which are separated by '|'. Upper and lower case are the same.
bool is_one_of(std::string_view text, std::string_view words) noexcept;

/// Field `index` (from 0) of a list with commas, without the blanks around it; empty if there are fewer.
std::string_view list_field(std::string_view list, std::size_t index) noexcept;

/// A number of a table: the first line has the names of the columns, the first column has the names of the
/// rows; tabs or blanks separate. nullopt if there is no such row or column.
std::optional<double> cell(std::string_view table, std::string_view row, std::string_view column) noexcept;

/// True if a '/'-separated path matches: '*' is any text within a name, "**/" is any number of folders.
bool matches(std::string_view pattern, std::string_view path) noexcept;

}  // namespace gpumeter::tree
