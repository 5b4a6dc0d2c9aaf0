#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Names of the kernel's tree as label values. Any bytes, any thread.
namespace gpumeter::cgroup {

/// A container's id has 64 bytes, below a user's slice about 80. A name chosen by a person may have 255 bytes
/// (NAME_MAX), a path 4095. Every series of the workload repeats it.
inline constexpr std::size_t kLongestLabel = 128;

/// Undoes systemd's escapes: `\x2d` is `-` (systemd.unit(5)).
std::string unescaped(std::string_view name);

/// UTF-8 without control characters, shortened() to kLongestLabel.
std::string label_text(std::string_view text);

}  // namespace gpumeter::cgroup
