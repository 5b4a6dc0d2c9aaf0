#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Names of the kernel's tree as label values. Any bytes, any thread.
namespace gpumeter::cgroup {

/// A container's id is 64 long, below a user's slice 80 and something; names of people's making may be 255
/// (NAME_MAX), paths 4095, and each is repeated in every series of its workload.
inline constexpr std::size_t kLongestLabel = 128;

/// Undoes systemd's escapes: `\x2d` is `-` (systemd.unit(5)). What is none stays.
std::string unescaped(std::string_view name);

/// Bytes that are no UTF-8, and control characters, become U+FFFD, one for each. Longer than kLongestLabel:
/// cut, with
/// `~` and a hash of the whole in place of the rest, so that two names do not become one.
std::string label_text(std::string_view text);

}  // namespace gpumeter::cgroup
