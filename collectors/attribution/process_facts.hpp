#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// What /proc says of a process beside its group. Any thread; each call reads one small file.
namespace gpumeter::workloads {

/// The first number of the line `Uid:` in /proc/PID/status: the real user.
std::optional<std::uint32_t> real_uid(std::string_view status) noexcept;

/// The same of a process; nullopt where it is gone or may not be seen.
std::optional<std::uint32_t> real_uid_of(const std::string& procfs, int pid);

/// /proc/PID/comm as a label: what the process calls itself, so any bytes. Empty where it cannot be read.
std::string name_of(const std::string& procfs, int pid);

}  // namespace gpumeter::workloads
