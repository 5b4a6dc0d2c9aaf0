#pragma once

#include <optional>
#include <string_view>

/// What amdgpu and the PCI core write as text where one file holds several values. Pure functions; any text.
namespace gpumeter::amd {

/// The number behind `key` on a line of its own: "DLP 3" (aer_dev_fatal), "ue: 2" (ras/umc_err_count).
/// nullopt: no line is that.
std::optional<double> count_of(std::string_view text, std::string_view key) noexcept;

/// True if any line is a word and a number. A file of counts that has none is a sentence, such as the "Query
/// currently inaccessible" that a card gives while it is being reset (kernel 6.12, amdgpu_ras.c).
bool has_counts(std::string_view text) noexcept;

/// The highest frequency of a pp_dpm_* file, in MHz: its lines are "1: 2450Mhz *", the level marked that is
/// in force. In deep sleep the driver adds a line "S: 19Mhz *". nullopt: the file has no level.
std::optional<double> highest_level(std::string_view text) noexcept;

/// The marked one. Of several, which then are levels of nearly one frequency, the first. nullopt: none is
/// marked, as between two levels.
std::optional<double> current_level(std::string_view text) noexcept;

/// The sum of xgmi_num_links: for each GPU of the hive how many links lead to it, in hexadecimal, "00 02 01 "
/// (kernel 6.12, amdgpu_xgmi.c). nullopt: the text is not that.
std::optional<double> sum_of_links(std::string_view text) noexcept;

}  // namespace gpumeter::amd
