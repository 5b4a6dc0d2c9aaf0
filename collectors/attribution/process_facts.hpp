#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// Facts about a process from /proc, in addition to its group. Any thread; each call reads one small file.
namespace gpumeter::workloads {

/// The real user of a process; nullopt if the process is gone or hidden.
std::optional<std::uint32_t> real_uid_of(const std::string& procfs, int pid);

/// /proc/PID/comm as a label. The process sets it, so it may contain any bytes. Empty if it cannot be read.
std::string name_of(const std::string& procfs, int pid);

}  // namespace gpumeter::workloads
