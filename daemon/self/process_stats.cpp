#include "daemon/self/process_stats.hpp"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace gpumeter {
namespace {

/// Fields of /proc/self/stat behind the command's name, counted from 0; proc(5) counts from 3 there.
enum StatField : std::size_t {
  kUserTicks = 11,
  kSystemTicks = 12,
  kThreads = 17,
  kStartTicks = 19,
  kVirtual,
  kResident
};

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The numbers behind the name, which stands in parentheses and may hold any byte, also `)`.
std::vector<double> stat_fields(const std::string& text) {
  const std::size_t name_end = text.rfind(')');
  std::vector<double> fields;
  if (name_end == std::string::npos) return fields;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  rest >> state;
  fields.push_back(0);
  for (double field = 0; rest >> field;) fields.push_back(field);
  return fields;
}

/// The number behind `key` at the start of a line.
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
  const std::vector<double> fields = stat_fields(*stat);
  const auto boot_time = number_after(*machine, "btime ");
  const auto max_fds = number_after(*limits, "Max open files");
  if (fields.size() <= kResident || !boot_time || !max_fds) {
    return Error(procfs + "/self: not in the form of proc(5)");
  }
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  return ProcessStats{
      .cpu_seconds = (fields[kUserTicks] + fields[kSystemTicks]) / ticks_per_second,
      .start_time_seconds = *boot_time + fields[kStartTicks] / ticks_per_second,
      .virtual_bytes = fields[kVirtual],
      .resident_bytes = fields[kResident] * static_cast<double>(sysconf(_SC_PAGESIZE)),
      .threads = fields[kThreads],
      .open_fds = *open_fds,
      .max_fds = *max_fds,
  };
}

}  // namespace gpumeter
