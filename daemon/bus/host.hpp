#pragma once

#include <set>
#include <string>

namespace gpumeter {

/// What the system has for its GPUs, apart from the bus.
struct Host {
  std::set<std::string> modules;  ///< the loaded modules among those that drive GPUs

  /// The state of NVIDIA's control node. NVML requires it.
  struct Node {
    std::string why;  ///< empty: this process may open it, or the driver is not loaded
    std::string remedy;
  };
  Node nvidia_node;
};

/// Looks at <sysfs_root>/module and <dev_root>/nvidiactl. Opens nothing, so that it wakes no device.
Host look_at_host(const std::string& sysfs_root, const std::string& dev_root = "/dev");

}  // namespace gpumeter
