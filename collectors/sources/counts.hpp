#pragma once

#include <optional>
#include <string_view>

/// Parsers of files with a word and a number on each line. Pure functions; they accept any text.
namespace gpumeter {

/// The number after `key` on a line of its own: "DLP 3" (aer_dev_fatal), "ue: 2" (ras/umc_err_count).
/// nullopt: no such line.
std::optional<double> count_of(std::string_view text, std::string_view key) noexcept;

/// True if any line is a word and a number. A file of counts without such a line holds a sentence, such as
/// "Query currently inaccessible" during a reset of the card (kernel 6.12, amdgpu_ras.c).
bool has_counts(std::string_view text) noexcept;

}  // namespace gpumeter
