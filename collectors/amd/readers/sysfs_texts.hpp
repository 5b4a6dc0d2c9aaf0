#pragma once

#include <optional>
#include <string_view>

#include "collectors/sources/counts.hpp"

/// Parsers of amdgpu's and the PCI core's files with several values each. Pure functions; they accept any
/// text.
namespace gpumeter::amd {

using gpumeter::count_of;
using gpumeter::has_counts;

/// The highest frequency of a pp_dpm_* file, in MHz. Its lines are "1: 2450Mhz *", with a mark at the level
/// in force. In deep sleep the driver adds a line "S: 19Mhz *". nullopt: the file has no level.
std::optional<double> highest_level(std::string_view text) noexcept;

/// The marked level. If several are marked, their frequencies are nearly equal; the first is returned.
/// nullopt: none is marked, as between two levels.
std::optional<double> current_level(std::string_view text) noexcept;

/// The sum of xgmi_num_links, the number of links to each GPU of the hive, in hexadecimal: "00 02 01 "
/// (kernel 6.12, amdgpu_xgmi.c). nullopt: the text has a different form.
std::optional<double> sum_of_links(std::string_view text) noexcept;

}  // namespace gpumeter::amd
