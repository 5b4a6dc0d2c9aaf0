#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/tree.hpp"

namespace gpumeter {

/// A /proc whose processes hold DRM devices, and a /sys with the devices.
class FakeDrmProcfs {
 public:
  /// A process without descriptors. `flags`: field 9 of its stat.
  void add(int pid, std::uint64_t start = 100, char state = 'S', std::uint64_t flags = 0) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    tree_.write(folder + "stat", std::to_string(pid) + " (a) b) " + state + " 1 2 3 4 5 " +
                                     std::to_string(flags) + " 7 8 9 10 11 12 13 14 15 16 1 18 " +
                                     std::to_string(start) + " 20 21\n");
    tree_.write(folder + "fd/.keep", "");
  }
  void open(int pid, int fd, const std::string& target, std::string_view fdinfo) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    tree_.remove(folder + "fd/" + std::to_string(fd));
    tree_.write(folder + "fd/" + std::to_string(fd), "-> " + target);
    tree_.write(folder + "fdinfo/" + std::to_string(fd), fdinfo);
  }
  void close(int pid, int fd) { tree_.remove("proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd)); }
  void end(int pid) { tree_.remove("proc/" + std::to_string(pid)); }
  /// /dev/dri/NODE belongs to `device`.
  void node(const std::string& name, const std::string& device) {
    tree_.write("sys/class/drm/" + name + "/device", "-> ../../../devices/" + device);
  }

  std::string procfs() const { return tree_ / "proc"; }
  std::string sysfs() const { return tree_ / "sys"; }

 private:
  Tree tree_ = make_tree({{"proc/cpuinfo", ""}, {"sys/.keep", ""}});
};

}  // namespace gpumeter
