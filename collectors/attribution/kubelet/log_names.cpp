#include "collectors/attribution/kubelet/log_names.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::kubelet {
namespace {

constexpr std::size_t kMostNames = 16384;  // of one folder
constexpr std::size_t kIdLength = 64;

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// A pod and the time of its last change.
struct Dated {
  Pod pod;
  std::int64_t changed = 0;  // seconds since 1970
};
using Pods = std::map<std::string, Dated>;  // by uid

/// NAMESPACE_POD_UID; names of Kubernetes have no `_`.
std::optional<Pod> pod_of_folder(std::string_view name) {
  const std::string_view ns = take_until(name, '_');
  const std::string_view pod = take_until(name, '_');
  if (ns.empty() || pod.empty() || name.empty() || name.find('_') != std::string_view::npos)
    return std::nullopt;
  return Pod{.ns = std::string(ns), .name = std::string(pod), .uid = std::string(name)};
}

/// POD_NAMESPACE_CONTAINER-ID.log
std::optional<Container> container_of_link(std::string_view name) {
  constexpr std::string_view kEnd = ".log";
  take_until(name, '_');
  take_until(name, '_');
  if (!name.ends_with(kEnd) || name.size() < kEnd.size() + kIdLength + 2) return std::nullopt;
  name.remove_suffix(kEnd.size());
  const std::size_t dash = name.size() - kIdLength - 1;
  const std::string_view id = name.substr(dash + 1);
  const bool is_id = name[dash] == '-' && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!is_id) return std::nullopt;
  return Container{.name = std::string(name.substr(0, dash)), .id = std::string(id)};
}

/// The pod of a link's target, /var/log/pods/NAMESPACE_POD_UID/CONTAINER/0.log.
std::optional<Pod> pod_of_target(std::string_view target) {
  while (!target.empty()) {
    if (auto pod = pod_of_folder(take_until(target, '/'))) return pod;
  }
  return std::nullopt;
}

/// Calls `take(folder's descriptor, name)` for each entry. Returns errno, or 0.
template <class Take>
int each_entry(const std::string& path, Take take) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) return errno;
  for (std::size_t count = 0; count < kMostNames; ++count) {
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] != '.') take(::dirfd(folder.get()), entry->d_name);
  }
  return 0;
}

Dated& dated(Pods& pods, const Pod& pod, std::int64_t changed) {
  Dated& known = pods.try_emplace(pod.uid, Dated{pod, changed}).first->second;
  known.changed = std::max(known.changed, changed);
  return known;
}

std::int64_t changed_at(int folder, const char* name) noexcept {
  struct stat facts {};
  return ::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 ? facts.st_mtim.tv_sec : 0;
}

int read_folders(const std::string& path, Pods& pods) {
  return each_entry(path, [&pods](int folder, const char* name) {
    if (auto pod = pod_of_folder(name)) dated(pods, *std::move(pod), changed_at(folder, name));
  });
}

int read_links(const std::string& path, Pods& pods) {
  return each_entry(path, [&pods](int folder, const char* name) {
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlinkat(folder, name, target.data(), target.size());
    auto container = container_of_link(name);
    if (size <= 0 || !container) return;
    auto pod = pod_of_target({target.data(), static_cast<std::size_t>(size)});
    if (!pod) return;
    dated(pods, *std::move(pod), changed_at(folder, name)).pod.containers.push_back(*std::move(container));
  });
}

}  // namespace

Result<std::vector<Pod>> read_log_names(const std::string& folder) {
  Pods pods;
  const int links_error = read_links(folder + "/containers", pods);
  const int error = read_folders(folder + "/pods", pods);
  if (error != 0 && links_error != 0) return Error(folder + ": " + std::generic_category().message(error));
  std::vector<Dated> newest;
  for (auto& [uid, each] : pods) newest.push_back(std::move(each));
  std::ranges::stable_sort(newest, std::greater<>(), &Dated::changed);
  std::vector<Pod> list;
  for (Dated& each : newest) {
    std::ranges::sort(each.pod.containers, {}, &Container::id);
    list.push_back(std::move(each.pod));
  }
  return list;
}

}  // namespace gpumeter::kubelet
