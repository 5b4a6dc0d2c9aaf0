#include "collectors/sources/host/topology.hpp"

#include <algorithm>
#include <cstddef>

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
