#include "collectors/sources/host_memory.hpp"

#include <array>
#include <cstdint>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr double kKibibyte = 1024;

/// "    8046976 kB" -> bytes
std::optional<double> bytes_of(std::string_view value) noexcept {
  value = trimmed(value);
  const auto kibibytes = take_number<std::uint64_t>(value);
  if (!kibibytes || trimmed(value) != "kB") return std::nullopt;
  return static_cast<double>(*kibibytes) * kKibibyte;
}

}  // namespace

std::optional<HostMemory> parse_host_memory(std::string_view meminfo) noexcept {
  std::optional<double> total;
  std::optional<double> available;
  while (!meminfo.empty() && !(total && available)) {
    std::string_view line = take_until(meminfo, '\n');
    const std::string_view name = take_until(line, ':');
    if (name == "MemTotal") total = bytes_of(line);
    if (name == "MemAvailable") available = bytes_of(line);
  }
  if (!total || !available || *available > *total) return std::nullopt;
  return HostMemory{*total, *available};
}

ReadStatus HostMemoryFile::read(HostMemory& out) const noexcept {
  std::array<char, 512> buffer{};  // the two are among the first three lines
  const sysfs::Bytes bytes = file_.read(buffer);
  if (bytes.status != ReadStatus::ok) return bytes.status;
  const std::optional<HostMemory> memory = parse_host_memory({buffer.data(), bytes.size});
  if (!memory) return ReadStatus::failed;
  out = *memory;
  return ReadStatus::ok;
}

}  // namespace gpumeter
