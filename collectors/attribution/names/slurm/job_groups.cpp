#include "collectors/attribution/names/slurm/job_groups.hpp"

#include <dirent.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "collectors/attribution/cgroup/slurm.hpp"

namespace gpumeter::slurm {
namespace {

// CgroupSlice= may name a slice below others.
constexpr unsigned kDeepest = 4;
// Job folders of one machine; a limit for a folder with any content.
constexpr std::size_t kMostFolders = 16384;

/// Names of the sub-folders; empty if there is no such folder.
std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  if (!folder) return names;
  while (const dirent* const entry = readdir(folder.get())) {
    const bool is_folder = entry->d_type == DT_DIR && entry->d_name[0] != '.';
    if (is_folder && names.size() < kMostFolders) names.emplace_back(entry->d_name);
  }
  return names;
}

class Walk {
 public:
  explicit Walk(JobGroups& groups) : groups_(groups) {}

  /// `path` is below the root of a unified hierarchy `root`.
  void slices(const std::string& root, const std::string& path, unsigned depth) {
    for (const std::string& name : folders_in(root + path)) {
      const std::string below = path + "/" + name;
      if (name.ends_with("slurmstepd.scope")) jobs(root, below);
      if (name.ends_with(".slice") && name != "user.slice" && depth < kDeepest)
        slices(root, below, depth + 1);
    }
  }

  /// /slurm[_NODE]/uid_N/job_N
  void users(const std::string& root) {
    for (const std::string& name : folders_in(root)) {
      if (name != "slurm" && !name.starts_with("slurm_")) continue;
      groups_.has_slurm = true;
      for (const std::string& user : folders_in(root + "/" + name)) jobs(root, "/" + name + "/" + user);
    }
  }

 private:
  void jobs(const std::string& root, const std::string& path) {
    groups_.has_slurm = true;
    for (const std::string& name : folders_in(root + path)) {
      const std::string job = path + "/" + name;
      const cgroup::SlurmFolder folder = cgroup::slurm_folder(job);
      if (!folder.id().empty()) groups_.folders.emplace(folder.id(), root + job);
    }
  }

  JobGroups& groups_;
};

}  // namespace

JobGroups read_job_groups(const std::string& sysfs) {
  JobGroups groups;
  Walk walk(groups);
  const std::string root = sysfs + "/fs/cgroup";
  walk.slices(root, "", 0);
  for (const char* const hierarchy : {"/devices", "/freezer", "/memory", "/cpuset"}) {
    walk.users(root + hierarchy);
  }
  return groups;
}

}  // namespace gpumeter::slurm
