#include "collectors/attribution/cgroup/slurm.hpp"

#include <dirent.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/text.hpp"

namespace gpumeter::cgroup {

std::string_view take_name(std::string_view& path) noexcept {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return take_until(path, '/');
}

std::string_view between(std::string_view name, std::string_view prefix, std::string_view suffix) noexcept {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return {};
  if (name.size() < prefix.size() + suffix.size()) return {};
  return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
}

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_slice(std::string_view name) noexcept { return !between(name, "", ".slice").empty(); }

std::optional<std::uint32_t> user_of(std::string_view name) noexcept {
  std::string_view digits = between(name, "user-", ".slice");
  if (digits.empty()) digits = between(name, "user@", ".service");
  return parse_number<std::uint32_t>(digits);
}

namespace {

/// "s" and 13 digits.
bool looks_like_sluid(std::string_view name) noexcept {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";  // no I, L, O, U
  constexpr std::size_t kLength = 14;
  return name.size() == kLength && name.front() == 's' &&
         name.find_first_not_of(kDigits, 1) == std::string_view::npos;
}

std::string_view number_after(std::string_view prefix, std::string_view name) noexcept {
  const std::string_view number = between(name, prefix, "");
  return is_digits(number) ? number : std::string_view();
}

/// The job's own folder.
bool take_job(std::string_view name, SlurmFolder& folder) noexcept {
  folder.job = number_after("job_", name);
  if (looks_like_sluid(name)) folder.sluid = name;
  return !folder.id().empty();
}

/// Reads the folders below the job's: step_N/user/task_N or step_N/slurm, and in v1 step_N/task_N.
void take_steps(std::string_view path, SlurmFolder& folder) noexcept {
  folder.step = between(take_name(path), "step_", "");
  if (folder.step.empty()) return;
  std::string_view name = take_name(path);
  folder.daemon = name == "slurm";
  if (name == "user") name = take_name(path);
  folder.task = between(name, "task_", "");
}

SlurmFolder folder_v1(std::string_view path) noexcept {
  SlurmFolder folder;
  const std::string_view root = take_name(path);
  folder.node = between(root, "slurm_", "");
  folder.uid = number_after("uid_", take_name(path));
  const bool below_slurm = root == "slurm" || !folder.node.empty();
  if (!below_slurm || folder.uid.empty() || !take_job(take_name(path), folder)) return {};
  take_steps(path, folder);
  return folder;
}

SlurmFolder folder_v2(std::string_view path) noexcept {
  std::string_view name = take_name(path);
  if (!is_slice(name) || name == "user.slice" || user_of(name)) return {};  // CgroupSlice= may set any other
  while (is_slice(name)) name = take_name(path);
  SlurmFolder folder;
  folder.node = between(name, "", "_slurmstepd.scope");
  const bool below_slurm = name == "slurmstepd.scope" || !folder.node.empty();
  if (!below_slurm || !take_job(take_name(path), folder)) return {};
  take_steps(path, folder);
  return folder;
}

}  // namespace

bool is_sluid(std::string_view text) noexcept {
  return looks_like_sluid(text) && text[1] <= 'F';  // 13 digits have 65 bits
}

SlurmFolder slurm_folder(std::string_view path) noexcept {
  const SlurmFolder folder = folder_v1(path);
  return folder.id().empty() ? folder_v2(path) : folder;
}

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
      const SlurmFolder folder = slurm_folder(job);
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

}  // namespace gpumeter::cgroup
