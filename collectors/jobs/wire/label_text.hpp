#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpumeter::jobs {

inline constexpr std::size_t kMaxLabelBytes = 64;

/// Returns printable UTF-8, cut to kMaxLabelBytes between two characters. U+FFFD replaces each byte that is
/// not UTF-8 and each unprintable character (controls, line separators, direction marks). Any thread.
std::string label_text(std::string_view raw);

/// The same for the name of a run, but shortened() instead of cut, so that names that differ only at their
/// ends stay different. The Python client does the same. Any thread.
std::string run_name_text(std::string_view raw);

}  // namespace gpumeter::jobs
