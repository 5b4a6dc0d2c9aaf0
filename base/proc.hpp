#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What the kernel writes about a process, by proc(5). Reads no file. Any thread.
namespace gpumeter::proc {

/// <procfs>/<pid>/<name>
std::string path(const std::string& procfs, int pid, std::string_view name);

/// A field of /proc/PID/stat by its number in proc(5), 3 or above; empty if the text has no such field. The
/// process chooses the name in field 2, which may look like fields.
std::string_view stat_field(std::string_view stat, int number) noexcept;

/// When the process began, in clock ticks since boot.
std::optional<std::uint64_t> start_ticks(std::string_view stat) noexcept;

/// False if the process has ended, also while it is a zombie: its parent has not waited for it yet, which
/// some never do (PID 1 of many containers). A process whose first thread alone has ended is alive.
bool is_alive(std::string_view stat) noexcept;

/// The four numbers of the line `Uid:` in /proc/PID/status: real, effective, saved, of the file system.
std::optional<std::array<std::uint32_t, 4>> uids(std::string_view status) noexcept;

}  // namespace gpumeter::proc
