#include "daemon/bus/host.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace gpumeter {
namespace {

Host::Node node_at(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 && errno == ENOENT) {
    return {
        "the device node " + path + " is missing",
        "create it: nvidia-modprobe -c 0, or start nvidia-persistenced; in a container, pass the driver in"};
  }
  if (faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0 || errno != EACCES) return {};
  return {"the user of gpumeter may not open " + path,
          "add the user to the group " + std::to_string(status.st_gid) +
              " of the node, such as render or video, or correct the permissions of the node"};
}

}  // namespace

Host look_at_host(const std::string& sysfs_root, const std::string& dev_root) {
  Host host;
  for (const char* module : {"nvidia", "amdgpu", "radeon", "i915", "xe"}) {
    std::error_code ignored;
    if (std::filesystem::exists(sysfs_root + "/module/" + module, ignored)) host.modules.insert(module);
  }
  if (host.modules.contains("nvidia")) host.nvidia_node = node_at(dev_root + "/nvidiactl");
  return host;
}

}  // namespace gpumeter
