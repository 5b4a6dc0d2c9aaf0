#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/descriptor.hpp"

namespace gpumeter::cgroup {

/// Notices the control groups of new Slurm jobs, pods and containers of pods: inotify(7) on the folders in
/// which Slurm, the kubelet and the runtimes create them. A look costs one system call if there is nothing
/// new. One thread; calls block for as long as the folders' file system.
class NewGroups {
 public:
  /// Limit of watched folders; further ones are not watched. Each pod is one.
  static constexpr std::size_t kMostWatches = 1024;

  /// `root`: /sys/fs/cgroup. In cgroup v1 the hierarchies are its folders.
  explicit NewGroups(std::string root) : root_(std::move(root)) {}

  /// Returns true if a group of a workload was created since the last call. The first call starts the watch.
  bool look();

  std::size_t watches() const noexcept { return watched_.size(); }

 private:
  void start();
  bool follow(const std::string& hierarchy, const std::string& path);
  bool follow_children(const std::string& hierarchy, const std::string& path);
  void forget(const std::string& hierarchy, const std::string& path);
  bool take(int watch, const std::string& name, unsigned mask);

  struct Folder {
    std::string hierarchy;  ///< its folder in the file system
    std::string path;       ///< below the hierarchy, as /proc/PID/cgroup has it; empty: the root
  };
  const std::string root_;
  Descriptor events_;
  bool is_started_ = false;
  std::map<int, Folder> watched_;
};

}  // namespace gpumeter::cgroup
