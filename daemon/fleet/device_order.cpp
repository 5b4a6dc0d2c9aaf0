#include "daemon/fleet/device_order.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace gpumeter {

void sort_by_bus(std::vector<Find>& finds) {
  const auto key = [](const Find& find) {
    return std::make_tuple(find.info.pci_address.empty(), std::string_view(find.info.pci_address));
  };
  std::stable_sort(finds.begin(), finds.end(), [&](const Find& a, const Find& b) { return key(a) < key(b); });
}

unsigned preferred_index(const std::vector<std::string>& bus, const DeviceInfo& info, unsigned ordinal) {
  const auto place = std::find(bus.begin(), bus.end(), info.pci_address);
  if (place != bus.end()) return static_cast<unsigned>(place - bus.begin());
  return static_cast<unsigned>(bus.size()) + ordinal;
}

}  // namespace gpumeter
