#include "collectors/host/readings.hpp"

#include <cstdint>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::host {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;

// Where distributions mount the hierarchies: v2 alone, v2 beside v1 (systemd's hybrid mode), v1.
constexpr std::string_view kUnified[] = {"/fs/cgroup", "/fs/cgroup/unified"};
constexpr std::string_view kAccounting[] = {"/fs/cgroup/cpuacct", "/fs/cgroup/cpu,cpuacct"};

// The root has the CPU time of the whole machine; ".." leads out of the namespace.
bool is_within(std::string_view group) noexcept {
  return group.size() > 1 && group.starts_with('/') && group.find("/..") == std::string_view::npos;
}

/// The seconds of "... total=MICROSECONDS".
std::optional<double> total_of(std::string_view fields) noexcept {
  constexpr std::string_view kTotal = "total=";
  while (!fields.empty()) {
    const std::string_view field = take_until(fields, ' ');
    if (!field.starts_with(kTotal)) continue;
    const auto microseconds = parse_number<std::uint64_t>(trimmed(field.substr(kTotal.size())));
    if (!microseconds) return std::nullopt;
    return static_cast<double>(*microseconds) * kMicro;
  }
  return std::nullopt;
}

}  // namespace

Pressure parse_pressure(std::string_view text) noexcept {
  Pressure pressure;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view waiting = take_until(line, ' ');
    if (waiting == "some") pressure.some = total_of(line);
    if (waiting == "full") pressure.full = total_of(line);
  }
  return pressure;
}

Pressure read_pressure(const std::string& procfs_root, const std::string& resource) {
  return parse_pressure(sysfs::read_text(procfs_root + "/pressure/" + resource));
}

std::optional<double> parse_cpu_stat(std::string_view text) noexcept {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ' ') != "usage_usec") continue;
    const auto microseconds = parse_number<std::uint64_t>(trimmed(line));
    if (!microseconds) return std::nullopt;
    return static_cast<double>(*microseconds) * kMicro;
  }
  return std::nullopt;
}

std::optional<double> cpu_seconds(const std::string& sysfs_root, const std::string& group) {
  if (!is_within(group)) return std::nullopt;
  for (const std::string_view mount : kUnified) {
    const auto seconds =
        parse_cpu_stat(sysfs::read_text(sysfs_root + std::string(mount) + group + "/cpu.stat"));
    if (seconds) return seconds;
  }
  for (const std::string_view mount : kAccounting) {
    const auto nanoseconds = sysfs::read_integer(sysfs_root + std::string(mount) + group + "/cpuacct.usage");
    if (nanoseconds && *nanoseconds >= 0) return static_cast<double>(*nanoseconds) * kNano;
  }
  return std::nullopt;
}

}  // namespace gpumeter::host
