#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectors/profiles/door.hpp"
#include "collectors/sources/tcp/listeners.hpp"

namespace gpumeter::profiles {

/// A process that listens on one of the ports, on loopback.
struct PortHolder {
  Process process;
  tcp::Listener listener;
  bool is_debug_server = false;  ///< of PyTorch; otherwise the profiler service of TensorFlow or JAX

  bool operator==(const PortHolder&) const = default;
};

/// The processes on the ports, and the ports that cannot be used.
struct Ports {
  std::vector<PortHolder> holders;  ///< sorted by pid; one port of each process
  std::set<std::uint16_t> shared;   ///< several processes of one user listen; the kernel chooses who answers
  std::set<std::uint16_t> hidden;   ///< a process listens that gpumeter may not inspect

  bool operator==(const Ports&) const = default;
};

/// Finds the processes that listen on ports which the configuration names. Lists the sockets; only for one
/// that is new, looks through the processes of its user. If a process and its children have the socket, the
/// oldest one counts: children inherit it. One thread; reads /proc.
class PortSearch {
 public:
  PortSearch(std::string procfs, std::set<std::uint16_t> ports)
      : procfs_(std::move(procfs)), ports_(std::move(ports)) {}

  /// Returns an Error if the kernel does not list its sockets.
  Result<Ports> find();

 private:
  struct Holder {
    int pid = 0;  ///< 0: not found
    std::uint64_t start = 0;
  };

  Result<std::vector<tcp::Listener>> listeners() const;
  void find_new(const std::vector<tcp::Listener>& listeners);
  void look_at(int pid, const std::map<std::uint64_t, std::uint32_t>& wanted);
  bool is_alive(const Holder& holder) const;
  bool has_debug_server(int pid) const;

  const std::string procfs_;
  const std::set<std::uint16_t> ports_;
  std::map<std::uint64_t, Holder> known_;  ///< by inode
};

/// Returns an Error unless the socket still listens on its port, and no other one does. For the moment before
/// a connection: after a search, the port may have passed to another user's process. Any thread.
Result<Done> check_listener(const std::string& procfs, const tcp::Listener& listener);

}  // namespace gpumeter::profiles
