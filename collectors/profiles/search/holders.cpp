#include "collectors/profiles/search/holders.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/proc.hpp"
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
    const SocketHolder& now = found->second.process;
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
