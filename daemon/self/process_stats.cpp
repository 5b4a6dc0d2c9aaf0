#include "daemon/self/process_stats.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/proc.hpp"
#include "base/text.hpp"

namespace gpumeter {
namespace {

/// Fields of /proc/self/stat, by proc(5).
enum StatField { kUserTicks = 14, kSystemTicks = 15, kThreads = 20, kStartTicks = 22, kVirtual, kResident };

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Returns 0 if the text has no such number; the kernel always prints it.
double number_in(std::string_view stat, StatField field) noexcept {
  return parse_number<double>(proc::stat_field(stat, field)).value_or(0);
}

/// Returns the number that follows `key` at the start of a line.
std::optional<double> number_after(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    double number = 0;
    if (rest >> number) return number;
    return line.find("unlimited") < line.size() ? std::optional(std::numeric_limits<double>::infinity())
                                                : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> count_entries(const std::string& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error) return std::nullopt;
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

}  // namespace

Result<ProcessStats> read_process_stats(const std::string& procfs) {
  const auto stat = read_file(procfs + "/self/stat");
  const auto limits = read_file(procfs + "/self/limits");
  const auto machine = read_file(procfs + "/stat");
  const auto open_fds = count_entries(procfs + "/self/fd");
  if (!stat || !limits || !machine || !open_fds) return Error("cannot read " + procfs + "/self");
  const auto boot_time = number_after(*machine, "btime ");
  const auto max_fds = number_after(*limits, "Max open files");
  if (proc::stat_field(*stat, kResident).empty() || !boot_time || !max_fds) {
    return Error(procfs + "/self: does not match proc(5)");
  }
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessStats{
      .cpu_seconds = (number_in(*stat, kUserTicks) + number_in(*stat, kSystemTicks)) / ticks_per_second,
      .start_time_seconds = *boot_time + number_in(*stat, kStartTicks) / ticks_per_second,
      .virtual_bytes = number_in(*stat, kVirtual),
      .resident_bytes = number_in(*stat, kResident) * static_cast<double>(sysconf(_SC_PAGESIZE)),
      .threads = number_in(*stat, kThreads),
      .open_fds = *open_fds,
      .max_fds = *max_fds,
  };
}

}  // namespace gpumeter
