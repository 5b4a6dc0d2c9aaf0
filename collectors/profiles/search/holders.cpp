#include "collectors/profiles/search/holders.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/proc.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/sources/tcp/holders.hpp"

namespace gpumeter::profiles {
namespace {

// PyTorch's WorkerServer names its threads (torch/csrc/distributed/c10d/control_plane/WorkerServer.cpp).
bool has_worker_server(const std::string& procfs, int pid) {
  constexpr std::string_view kThread = "pt_workerserver";
  const std::string tasks = proc::path(procfs, pid, "task");
  return std::ranges::any_of(sysfs::list(tasks), [&](const std::string& task) {
    return sysfs::read_text(tasks + "/" + task + "/comm") == kThread;
  });
}

/// The folder in which Python found jaxlib; empty: the process has not loaded it.
std::string folder_of_jaxlib(std::string_view maps) {
  const std::size_t at = maps.find("/jaxlib/");
  if (at == std::string_view::npos) return "";
  const std::size_t line = maps.rfind('\n', at) + 1;  // npos + 1 is 0
  const std::size_t path = maps.find('/', line);
  return std::string(maps.substr(path, at - path));
}

/// "jaxlib-0.10.2.dist-info" is 0.10.2.
std::array<unsigned, 3> version_of(std::string_view name, std::string_view package) {
  std::array<unsigned, 3> version{};
  name.remove_prefix(package.size());
  for (unsigned& part : version) part = parse_number<unsigned>(take_until(name, '.')).value_or(0);
  return version;
}

/// Tracing the host makes jaxlib import TensorFlow's Python package, and jaxlib 0.8.1 stops the job for ever
/// if there is none (xla/python/profiler/internal/python_hooks.cc). 0.10.2 goes on; those between are not
/// known. TensorFlow itself, or JAX with TensorFlow loaded, has the package.
bool has_safe_host_trace(const std::string& procfs, int pid) {
  constexpr std::size_t kMostMaps = 16U << 20U;
  constexpr std::string_view kPackage = "jaxlib-";
  constexpr std::array<unsigned, 3> kSafe = {0, 10, 2};
  const SmallFile maps = read_small_file(proc::path(procfs, pid, "maps"), kMostMaps);
  if (maps.text.find("/libtensorflow_framework.so") != std::string::npos) return true;
  const std::string folder = folder_of_jaxlib(maps.text);
  if (folder.empty()) return false;
  const std::vector<std::string> packages = sysfs::list(proc::path(procfs, pid, "root") + folder);
  return std::ranges::any_of(packages, [&](const std::string& name) {
    return name.starts_with(kPackage) && name.ends_with(".dist-info") && version_of(name, kPackage) >= kSafe;
  });
}

std::set<std::uint64_t> of_user(const WantedSockets& wanted, std::uint32_t user) {
  std::set<std::uint64_t> own;
  for (const auto& [inode, uid] : wanted) {
    if (!uid || *uid == user) own.insert(inode);
  }
  return own;
}

bool is_older(const SocketHolder& one, const SocketHolder& other) {
  return std::pair(one.start, one.pid) < std::pair(other.start, other.pid);
}

}  // namespace

ProcessLook look_at(const std::string& procfs, int pid, const WantedSockets& wanted) {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs, pid, "status")));
  const std::string stat = sysfs::read_text(proc::path(procfs, pid, "stat"));
  const auto start = proc::start_ticks(stat);
  if (!uids || !start || !proc::is_alive(stat)) return {};
  constexpr std::size_t kEffective = 1;  // a socket belongs to the effective user
  ProcessLook look{{pid, (*uids)[kEffective], *start}, {}};
  const std::set<std::uint64_t> own = of_user(wanted, look.process.uid);
  if (!own.empty()) look.sockets = tcp::sockets_of(procfs, pid, own).sockets;
  if (wanted.empty() || !look.sockets.empty()) {
    look.process.has_worker_server = has_worker_server(procfs, pid);
  }
  if (!look.sockets.empty()) look.process.has_safe_host_trace = has_safe_host_trace(procfs, pid);
  return look;
}

SocketHolders::SocketHolders(const std::string& procfs, const Clock& clock, Look look)
    : procfs_(procfs),
      look_(look ? std::move(look)
                 : [procfs](int pid, const WantedSockets& wanted) { return look_at(procfs, pid, wanted); }),
      calls_(std::make_unique<BoundedCalls>("profile-look", kPatience, clock)) {}

std::vector<std::string> SocketHolders::known_pids() const {
  std::set<std::string> pids;
  for (const auto& [inode, holder] : known_) pids.insert(std::to_string(holder.pid));
  return {pids.begin(), pids.end()};
}

void SocketHolders::renew() {
  const auto looks = calls_->ask<ProcessLook>(known_pids(), [look = look_](const std::string& pid) {
    return look(parse_number<int>(pid).value_or(0), {});
  });
  for (auto& [inode, holder] : known_) {
    const auto found = looks.values.find(std::to_string(holder.pid));
    if (found == looks.values.end()) continue;
    SocketHolder now = found->second.process;
    now.has_safe_host_trace = holder.has_safe_host_trace;
    holder = now.start == holder.start ? now : SocketHolder();
  }
  std::erase_if(known_, [](const auto& entry) { return entry.second.pid == 0; });
}

void SocketHolders::find(const WantedSockets& wanted) {
  std::vector<std::string> pids = sysfs::list(procfs_);
  std::erase_if(pids, [](const std::string& name) { return !parse_number<int>(name); });
  const auto looks = calls_->ask<ProcessLook>(pids, [look = look_, wanted](const std::string& pid) {
    return look(parse_number<int>(pid).value_or(0), wanted);
  });
  for (const auto& [pid, look] : looks.values) {
    for (const std::uint64_t inode : look.sockets) {
      SocketHolder& holder = known_[inode];
      if (holder.pid == 0 || is_older(look.process, holder)) holder = look.process;
    }
  }
}

void SocketHolders::look_for(const WantedSockets& sockets) {
  std::erase_if(known_, [&](const auto& entry) { return !sockets.contains(entry.first); });
  if (!known_.empty()) renew();
  WantedSockets unknown = sockets;
  std::erase_if(unknown, [&](const auto& entry) { return known_.contains(entry.first); });
  if (!unknown.empty()) find(unknown);
}

const SocketHolder* SocketHolders::of(std::uint64_t inode) const {
  const auto found = known_.find(inode);
  return found == known_.end() ? nullptr : &found->second;
}

}  // namespace gpumeter::profiles
