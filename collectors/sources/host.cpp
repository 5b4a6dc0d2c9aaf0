#include "collectors/sources/host.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

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

const HostMemoryFile::Reading& HostMemoryFile::read() noexcept {
  if (!std::exchange(is_fresh_, true)) reading_ = read_now();
  return reading_;
}

// The two lines are among the first three. A file that does not exist does not mean that a device is gone.
HostMemoryFile::Reading HostMemoryFile::read_now() const noexcept {
  std::array<char, 512> buffer{};
  const sysfs::Bytes bytes = file_.read(buffer);
  if (bytes.status == ReadStatus::gone) return {{}, ReadStatus::unsupported};
  if (bytes.status != ReadStatus::ok) return {{}, bytes.status};
  const std::optional<HostMemory> memory = parse_meminfo({buffer.data(), bytes.size});
  if (!memory) return {{}, ReadStatus::failed};
  return {*memory, ReadStatus::ok};
}

}  // namespace gpumeter

namespace gpumeter::pci {
namespace {

/// Length of the folder that contains both ports, without its slash.
std::size_t shared_folder(std::string_view one, std::string_view other) noexcept {
  const std::size_t most = std::min(one.size(), other.size());
  const auto end = std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(most), other.begin());
  const auto same = static_cast<std::size_t>(end.first - one.begin());
  const std::size_t slash = one.substr(0, same).rfind('/');
  return slash == std::string_view::npos ? 0 : slash;
}

/// Number of bridges between a shared folder and a port below it.
std::ptrdiff_t bridges_below(std::string_view port, std::size_t folder) noexcept {
  return std::count(port.begin() + static_cast<std::ptrdiff_t>(folder), port.end(), '/') - 1;
}

/// "pci0000:00", the host bridge's folder, or anything else above it.
bool is_bridge(std::string_view folder) noexcept {
  return parse_address(folder.substr(folder.rfind('/') + 1)).has_value();
}

bool is_host_bridge(std::string_view folder) noexcept {
  const std::string_view name = folder.substr(folder.rfind('/') + 1);
  return name.starts_with("pci") && name.find(':') != std::string_view::npos;
}

}  // namespace

std::optional<Place> place_of(const std::string& sysfs_root, const std::string& address) {
  const std::optional<Function> function = read_function(sysfs_root + "/bus/pci/devices/" + address);
  if (!function) return std::nullopt;
  return Place{upstream_port(*function), numa_node(*function)};
}

// Below one switch, each side has its own downstream port only.
Path path_between(const Place& one, const Place& other) {
  if (one.port == other.port) return Path::pix;  // functions of one card
  const std::size_t length = shared_folder(one.port, other.port);
  const std::string_view shared = std::string_view(one.port).substr(0, length);
  if (is_bridge(shared)) {
    const auto bridges = std::max(bridges_below(one.port, length), bridges_below(other.port, length));
    return bridges <= 1 ? Path::pix : Path::pxb;
  }
  if (is_host_bridge(shared)) return Path::phb;
  return one.numa_node == other.numa_node ? Path::node : Path::sys;
}

}  // namespace gpumeter::pci
