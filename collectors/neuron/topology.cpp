#include "collectors/neuron/topology.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/tree/file_index.hpp"

namespace gpumeter::neuron {

std::vector<int> device_numbers(std::string_view list) {
  std::vector<int> numbers;
  while (!list.empty()) {
    const auto number = parse_number<int>(trimmed(take_until(list, ',')));
    if (number && *number >= 0) numbers.push_back(*number);
  }
  return numbers;
}

std::string find_node(const std::string& folder, std::string_view name) {
  return tree::FileIndex(folder).file("**/" + std::string(name)).value_or("");
}

// A serial number of zeros is none.
std::string uuid_of(const std::string& folder) {
  const std::string serial = sysfs::read_text(find_node(folder, "serial_number"));
  const bool has_none = serial.find_first_not_of("0x") == std::string::npos;
  const std::string name = std::filesystem::path(folder).filename().string();
  return has_none ? name : "neuron-" + serial;
}

std::vector<SeriesSpec> connected_devices(const DeviceInfo& info) {
  std::vector<SeriesSpec> series;
  const std::string list = sysfs::read_text(find_node(info.source, "connected_devices"));
  const std::filesystem::path all = std::filesystem::path(info.source).parent_path();
  for (const int number : device_numbers(list)) {
    const std::string peer = (all / ("neuron" + std::to_string(number))).string();
    if (sysfs::list(peer).empty()) continue;
    series.push_back({&catalog::topology_info, {{"peer", uuid_of(peer)}, {"path", "link"}}});
  }
  return series;
}

}  // namespace gpumeter::neuron
