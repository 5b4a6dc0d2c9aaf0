#include "collectors/profiles/search/ports.hpp"

#include <algorithm>

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

Result<Ports> PortSearch::find() {
  if (ports_.empty()) return Ports();
  const Result<std::vector<tcp::Listener>> all = listeners();
  if (!all) return all.error();
  WantedSockets wanted;
  for (const tcp::Listener& each : *all) wanted[each.inode] = each.uid;
  holders_.look_for(wanted);
  Ports ports;
  std::set<int> seen;
  for (const tcp::Listener& each : *all) {
    const SocketHolder* const holder = holders_.of(each.inode);
    const auto others = std::ranges::count_if(*all, [&](const auto& it) { return is_same_place(it, each); });
    if (others > 1) {
      ports.shared.insert(each.port);
    } else if (holder == nullptr) {
      ports.hidden.insert(each.port);
    } else if (seen.insert(holder->pid).second) {
      ports.holders.push_back({.process = {holder->pid, each.uid},
                               .listener = each,
                               .is_debug_server = holder->has_worker_server,
                               .has_safe_host_trace = holder->has_safe_host_trace});
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
