#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Parses the kernel's text about a process, by proc(5). Reads no file. Any thread.
namespace gpumeter::proc {

/// Returns <procfs>/<pid>/<name>.
std::string path(const std::string& procfs, int pid, std::string_view name);

/// Returns a field of /proc/PID/stat by its number in proc(5), 3 or above; empty if the text has no such
/// field. The process chooses the name in field 2, and the name may look like fields.
std::string_view stat_field(std::string_view stat, int number) noexcept;

/// Returns the start time of the process, in clock ticks since boot.
std::optional<std::uint64_t> start_ticks(std::string_view stat) noexcept;

/// Returns false if the process has ended. A zombie has ended, although its parent has not waited for it yet;
/// PID 1 of many containers never does. A process is alive if only its first thread has ended.
bool is_alive(std::string_view stat) noexcept;

/// Returns the four UIDs of the line `Uid:` in /proc/PID/status: real, effective, saved, file system.
std::optional<std::array<std::uint32_t, 4>> uids(std::string_view status) noexcept;

}  // namespace gpumeter::proc
