#include "collectors/sources/drm.hpp"

#include <xf86drm.h>

#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::drm {
namespace {

/// N of "<prefix>N" and of "/dev/dri/<prefix>N".
std::optional<int> number_of(std::string_view name, std::string_view prefix) {
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  return parse_number<int>(name);
}

Nodes nodes_of(const drmDevice& device) {
  const auto number = [&](int type, std::string_view prefix) -> std::optional<int> {
    if ((device.available_nodes & (1 << type)) == 0) return std::nullopt;
    return number_of(device.nodes[type], prefix);
  };
  return {number(DRM_NODE_PRIMARY, "card"), number(DRM_NODE_RENDER, "renderD")};
}

pci::Address address_of(const drmPciBusInfo& bus) {
  return {static_cast<std::uint32_t>(bus.domain), bus.bus, bus.dev, bus.func};
}

}  // namespace

Nodes nodes_of(const std::string& function_path) {
  Nodes nodes;
  for (const std::string& name : sysfs::list(function_path + "/drm")) {
    if (!nodes.card) nodes.card = number_of(name, "card");
    if (!nodes.render) nodes.render = number_of(name, "renderD");
  }
  return nodes;
}

std::map<pci::Address, Nodes> libdrm_nodes() {
  std::map<pci::Address, Nodes> result;
  const int count = drmGetDevices2(0, nullptr, 0);
  if (count <= 0) return result;
  std::vector<drmDevicePtr> devices(static_cast<std::size_t>(count));
  const int filled = drmGetDevices2(0, devices.data(), count);
  if (filled <= 0) return result;
  for (std::size_t i = 0; i < static_cast<std::size_t>(filled); ++i) {
    if (devices[i]->bustype != DRM_BUS_PCI) continue;
    result.emplace(address_of(*devices[i]->businfo.pci), nodes_of(*devices[i]));
  }
  drmFreeDevices(devices.data(), filled);
  return result;
}

NodeMap::NodeMap(const std::string& sysfs_root) {
  if (sysfs_root == "/sys") by_libdrm_ = libdrm_nodes();
}

Nodes NodeMap::of(const pci::Function& function) const {
  Nodes nodes = nodes_of(function.path);
  const auto known = by_libdrm_.find(function.address);
  if (known == by_libdrm_.end()) return nodes;
  if (known->second.card) nodes.card = known->second.card;
  if (known->second.render) nodes.render = known->second.render;
  return nodes;
}

}  // namespace gpumeter::drm
