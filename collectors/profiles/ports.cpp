#include "collectors/profiles/ports.hpp"

#include <algorithm>
#include <utility>

#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/sources/tcp/holders.hpp"

namespace gpumeter::profiles {
namespace {

/// The addresses that the doors connect to.
bool is_reached(const tcp::Listener& listener) {
  return listener.address == "127.0.0.1" || listener.address == "::1";
}

bool is_same_place(const tcp::Listener& one, const tcp::Listener& other) {
  return one.port == other.port && one.address == other.address;
}

}  // namespace

Result<std::vector<tcp::Listener>> PortSearch::listeners() const {
  Result<std::vector<tcp::Listener>> all = tcp::listeners(procfs_);
  if (all) {
    std::erase_if(
        *all, [this](const tcp::Listener& each) { return !ports_.contains(each.port) || !is_reached(each); });
  }
  return all;
}

bool PortSearch::is_alive(const Holder& holder) const {
  const std::string stat = sysfs::read_text(proc::path(procfs_, holder.pid, "stat"));
  return proc::is_alive(stat) && proc::start_ticks(stat) == holder.start;
}

void PortSearch::look_at(int pid, const std::map<std::uint64_t, std::uint32_t>& wanted) {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs_, pid, "status")));
  const auto start = proc::start_ticks(sysfs::read_text(proc::path(procfs_, pid, "stat")));
  if (!uids || !start) return;
  constexpr std::size_t kEffective = 1;  // a socket belongs to the effective user
  std::set<std::uint64_t> own;
  for (const auto& [inode, uid] : wanted) {
    if (uid == (*uids)[kEffective]) own.insert(inode);
  }
  if (own.empty()) return;
  for (const std::uint64_t inode : tcp::sockets_of(procfs_, pid, own).sockets) {
    Holder& holder = known_[inode];
    const bool is_older = holder.pid == 0 || std::pair(*start, pid) < std::pair(holder.start, holder.pid);
    if (is_older) holder = {pid, *start};
  }
}

void PortSearch::find_new(const std::vector<tcp::Listener>& listeners) {
  std::erase_if(known_, [&](const auto& entry) {
    return !is_alive(entry.second) ||
           std::ranges::find(listeners, entry.first, &tcp::Listener::inode) == listeners.end();
  });
  std::map<std::uint64_t, std::uint32_t> wanted;  // inode to uid
  for (const tcp::Listener& each : listeners) {
    if (!known_.contains(each.inode)) wanted[each.inode] = each.uid;
  }
  if (wanted.empty()) return;
  for (const std::string& name : sysfs::list(procfs_)) {
    if (const auto pid = parse_number<int>(name)) look_at(*pid, wanted);
  }
}

// PyTorch's WorkerServer names its threads (torch/csrc/distributed/c10d/control_plane/WorkerServer.cpp).
bool PortSearch::has_debug_server(int pid) const {
  constexpr std::string_view kThread = "pt_workerserver";
  const std::string tasks = proc::path(procfs_, pid, "task");
  return std::ranges::any_of(sysfs::list(tasks), [&](const std::string& task) {
    return sysfs::read_text(tasks + "/" + task + "/comm") == kThread;
  });
}

Result<Ports> PortSearch::find() {
  const Result<std::vector<tcp::Listener>> all = listeners();
  if (!all) return all.error();
  find_new(*all);
  Ports ports;
  for (const tcp::Listener& each : *all) {
    const auto holder = known_.find(each.inode);
    const auto others = std::ranges::count_if(*all, [&](const auto& it) { return is_same_place(it, each); });
    if (others > 1) {
      ports.shared.insert(each.port);
    } else if (holder == known_.end()) {
      ports.hidden.insert(each.port);
    } else if (std::ranges::find(ports.holders, holder->second.pid, [](const PortHolder& it) {
                 return it.process.pid;
               }) == ports.holders.end()) {
      const int pid = holder->second.pid;
      ports.holders.push_back({{pid, each.uid}, each, has_debug_server(pid)});
    }
  }
  std::ranges::sort(ports.holders, {}, [](const PortHolder& each) { return each.process.pid; });
  return ports;
}

Result<Done> check_listener(const std::string& procfs, const tcp::Listener& listener) {
  const Result<std::vector<tcp::Listener>> all = tcp::listeners(procfs);
  if (!all) return all.error();
  const std::string port = "port " + std::to_string(listener.port);
  bool is_there = false;
  for (const tcp::Listener& each : *all) {
    if (!is_same_place(each, listener)) continue;
    if (each.inode != listener.inode) return Error(port + " now belongs to another process as well");
    is_there = true;
  }
  return is_there ? Result<Done>(Done{}) : Error("the process no longer listens on " + port);
}

}  // namespace gpumeter::profiles
