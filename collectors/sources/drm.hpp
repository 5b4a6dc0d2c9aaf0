#pragma once

#include <map>
#include <optional>
#include <string>

#include "collectors/sources/pci.hpp"

namespace gpumeter::drm {

/// Numbers of a device's nodes: /dev/dri/card<card>, /dev/dri/renderD<render>. Both may change at a reboot.
struct Nodes {
  std::optional<int> card;
  std::optional<int> render;

  bool operator==(const Nodes&) const = default;
};

/// The nodes below a PCI function's folder.
Nodes nodes_of(const std::string& function_path);

/// Every PCI device with nodes in /dev/dri, by libdrm, which opens none of them and so wakes no device. Empty
/// if /dev/dri is hidden (systemd's PrivateDevices=).
std::map<pci::Address, Nodes> libdrm_nodes();

/// Nodes by libdrm if `sysfs_root` is the machine's own; otherwise, and for nodes that libdrm omits, by the
/// function's folder.
class NodeMap {
 public:
  NodeMap() = default;
  explicit NodeMap(const std::string& sysfs_root);
  Nodes of(const pci::Function& function) const;

 private:
  std::map<pci::Address, Nodes> by_libdrm_;
};

}  // namespace gpumeter::drm
