#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpumeter::jobs {

/// A label value that came from a job is cut to so many bytes, between two characters.
inline constexpr std::size_t kMaxLabelBytes = 64;

/// Printable UTF-8 of at most kMaxLabelBytes. Each byte that is part of no character, and each character
/// that does not print (controls, line separators, those that turn the direction of writing), becomes
/// U+FFFD, as invalid bytes do on the exporter's page. Any thread.
std::string label_text(std::string_view raw);

/// The same for the name of a run. A longer one ends with `~` and 8 hexadecimal digits instead: FNV-1a (32
/// bits) of the whole of `raw`, so that names that differ only at their end stay two. The text before it has
/// at most 55 bytes of whole characters. Our client does the same. Any thread.
std::string run_name_text(std::string_view raw);

}  // namespace gpumeter::jobs
