#pragma once

#include <string>
#include <string_view>

#include "programs/top/layout/printable.hpp"
#include "programs/top/model/snapshot.hpp"

/// Values as people read them. An absent value is "-", never 0. Pure.
namespace gpumeter::top {

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

inline constexpr double kGiB = 1024.0 * 1024 * 1024;

}  // namespace gpumeter::top
