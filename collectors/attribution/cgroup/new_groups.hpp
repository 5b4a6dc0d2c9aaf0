#pragma once

#include <dirent.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"

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
  bool look() {
    if (!is_started_) {
      start();
      return false;
    }
    if (!events_) return false;
    bool has_new = false;
    alignas(inotify_event) std::array<char, 16384> buffer;
    ssize_t got = 0;
    while ((got = ::read(events_.number(), buffer.data(), buffer.size())) > 0) {
      for (const char* at = buffer.data(); at < buffer.data() + got;) {
        inotify_event event{};
        std::memcpy(&event, at, sizeof event);
        if ((event.mask & IN_Q_OVERFLOW) != 0) {  // events are missing
          start();
          return true;
        }
        const std::string name = event.len > 0 ? at + sizeof event : "";
        has_new = take(event.wd, name, event.mask) || has_new;
        at += sizeof event + event.len;
      }
    }
    return has_new;
  }

  std::size_t watches() const noexcept { return watched_.size(); }

 private:
  /// Slurm's plugins and runc create their groups in these hierarchies of v1, if the machine has them.
  static constexpr std::array kHierarchies = {"freezer", "devices", "memory"};
  static constexpr unsigned kEvents = IN_CREATE | IN_DELETE | IN_ONLYDIR;

  struct CloseFolder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
  };

  static std::string_view last_name(std::string_view path) noexcept {
    return path.substr(path.rfind('/') + 1);
  }

  static bool is_workload(const Path& path) noexcept {
    return path.kind == Kind::slurm_job || path.kind == Kind::pod;
  }
  /// The folder of a pod, which will have its containers.
  static bool is_pod(const Path& path) noexcept { return path.kind == Kind::pod && path.container.empty(); }

  static bool is_slurm_root(std::string_view name) noexcept {
    return name == "slurmstepd.scope" || name.ends_with("_slurmstepd.scope") || name == "slurm" ||
           name.starts_with("slurm_");
  }
  /// True if groups of workloads may be created in the folder, at any depth. Users may create any name below
  /// their slices, so these are left out.
  static bool may_hold_workloads(const std::string& path) noexcept {
    const std::string_view name = last_name(path);
    const Path parsed = read_path(path);
    if (!parsed.owner.empty() || name == "user.slice") return false;
    if (is_workload(parsed)) return is_pod(parsed);
    const std::string_view parent =
        last_name(std::string_view(path).substr(0, path.size() - name.size() - 1));
    return is_slice(name) || is_slurm_root(name) || name == "kubepods" ||
           (parent == "kubepods" && (name == "burstable" || name == "besteffort")) ||
           (is_slurm_root(parent) && name.starts_with("uid_"));
  }

  static bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  /// In v2 the root has this file. In v1 and in mixed systems its folders are hierarchies.
  void start() {
    is_started_ = true;
    watched_.clear();
    events_ = Descriptor(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!events_) return;
    if (exists(root_ + "/cgroup.controllers")) {
      follow(root_, "");
      return;
    }
    for (const char* hierarchy : kHierarchies) follow(root_ + "/" + hierarchy, "");
  }
  /// Watches a folder and those in it that may hold workloads. Returns true if one of them is a workload's.
  bool follow(const std::string& hierarchy, const std::string& path) {
    if (watched_.size() >= kMostWatches) return false;
    const int watch = ::inotify_add_watch(events_.number(), (hierarchy + path).c_str(), kEvents);
    if (watch < 0) return false;  // it has been removed, or the user has too many watches
    watched_[watch] = {hierarchy, path};
    return follow_children(hierarchy, path);
  }
  /// After the watch, so that no folder is missed.
  bool follow_children(const std::string& hierarchy, const std::string& path) {
    bool has_workload = false;
    const std::unique_ptr<DIR, CloseFolder> folder(::opendir((hierarchy + path).c_str()));
    while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
      if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
      const std::string child = path + "/" + entry->d_name;
      has_workload = is_workload(read_path(child)) || has_workload;
      if (may_hold_workloads(child)) has_workload = follow(hierarchy, child) || has_workload;
    }
    return has_workload;
  }
  /// The cgroup file system does not report the removal of a watched folder itself, only that of an entry of
  /// its parent.
  void forget(const std::string& hierarchy, const std::string& path) {
    const auto is_it = [&](const auto& entry) {
      return entry.second.path == path && entry.second.hierarchy == hierarchy;
    };
    const auto found = std::ranges::find_if(watched_, is_it);
    if (found == watched_.end()) return;
    ::inotify_rm_watch(events_.number(), found->first);
    watched_.erase(found);
  }
  /// Returns true if a workload's group was created.
  bool take(int watch, const std::string& name, unsigned mask) {
    if ((mask & IN_IGNORED) != 0) watched_.erase(watch);  // the folder was removed
    const auto folder = watched_.find(watch);
    if (folder == watched_.end() || (mask & IN_ISDIR) == 0) return false;
    const std::string hierarchy = folder->second.hierarchy;
    const std::string path = folder->second.path + "/" + name;
    if ((mask & IN_DELETE) != 0) forget(hierarchy, path);
    if ((mask & IN_CREATE) == 0) return false;
    const bool is_new = is_workload(read_path(path));
    const bool holds_new = may_hold_workloads(path) && follow(hierarchy, path);
    return is_new || holds_new;
  }

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
