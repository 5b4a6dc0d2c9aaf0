#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Parsers of the texts that drivers write into sysfs. They accept any bytes and, if not said otherwise,
/// allocate nothing; a number is finite.
namespace gpumeter::files {

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

/// The number after `key` on a line of its own: "DLP 3" (aer_dev_fatal), "ue: 2" (ras/umc_err_count).
/// nullopt: no such line.
std::optional<double> count_of(std::string_view text, std::string_view key) noexcept;

/// True if any line is a word and a number. A file of counts without such a line holds a sentence, such as
/// "Query currently inaccessible" during a reset of the card (kernel 6.12, amdgpu_ras.c).
bool has_counts(std::string_view text) noexcept;

/// Lower case, with '_' for everything but letters and digits: "VDD GPU_SOC" -> "vdd_gpu_soc". Allocates.
std::string label_value(std::string_view text);

/// True if a '/'-separated path matches: '*' is any text within a name, "**/" is any number of folders.
bool matches(std::string_view pattern, std::string_view path) noexcept;

}  // namespace gpumeter::files
