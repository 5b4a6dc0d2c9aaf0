#pragma once

#include <map>
#include <optional>
#include <string>

#include "collectors/sources/pci.hpp"

namespace gpumeter::drm {

/// Numbers of a device's nodes: /dev/dri/card<card>, /dev/dri/renderD<render>. Neither survives a reboot.
struct Nodes {
  std::optional<int> card;
  std::optional<int> render;

  bool operator==(const Nodes&) const = default;
};

/// The nodes below one PCI function, as its folder says.
Nodes nodes_of(const std::string& function_path);

/// What libdrm says of every PCI device that has nodes in /dev/dri. It opens none of them, so nothing wakes.
/// Empty where /dev/dri is hidden, as systemd's PrivateDevices= does.
std::map<pci::Address, Nodes> libdrm_nodes();

/// By libdrm where `sysfs_root` is the machine's own, and by the folder for what it does not tell.
class NodeMap {
 public:
  NodeMap() = default;
  explicit NodeMap(const std::string& sysfs_root);
  Nodes of(const pci::Function& function) const;

 private:
  std::map<pci::Address, Nodes> by_libdrm_;
};

}  // namespace gpumeter::drm
