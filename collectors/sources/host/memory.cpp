#include "collectors/sources/host/memory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr double kBytes = 1024;  // of the kernel's "kB"

/// The number of a line "MemTotal:       32795860 kB".
std::optional<double> value_of(std::string_view line, std::string_view key) noexcept {
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::optional<std::uint64_t> number = take_number<std::uint64_t>(line);
  if (!number || line != " kB") return std::nullopt;
  return static_cast<double>(*number) * kBytes;
}

}  // namespace

// A last line without its end may be cut.
std::optional<HostMemory> parse_meminfo(std::string_view text) noexcept {
  std::optional<double> total;
  std::optional<double> available;
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view line = text.substr(0, end);
    if (!total) total = value_of(line, "MemTotal:");
    if (!available) available = value_of(line, "MemAvailable:");
    text.remove_prefix(end + 1);
  }
  if (!total || !available || *available > *total) return std::nullopt;
  return HostMemory{*total, *available};
}

// The two lines are among the first three. A file that does not exist does not mean that a device is gone.
HostMemoryFile::Reading HostMemoryFile::read() const noexcept {
  std::array<char, 512> buffer{};
  const sysfs::Bytes bytes = file_.read(buffer);
  if (bytes.status == ReadStatus::gone) return {{}, ReadStatus::unsupported};
  if (bytes.status != ReadStatus::ok) return {{}, bytes.status};
  const std::optional<HostMemory> memory = parse_meminfo({buffer.data(), bytes.size});
  if (!memory) return {{}, ReadStatus::failed};
  return {*memory, ReadStatus::ok};
}

}  // namespace gpumeter
