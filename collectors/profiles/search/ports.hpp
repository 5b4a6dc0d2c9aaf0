#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectors/profiles/door.hpp"
#include "collectors/profiles/search/holders.hpp"
#include "collectors/sources/tcp/listeners.hpp"

namespace gpumeter::profiles {

/// A process that listens on one of the ports, on loopback, or on a Unix socket.
struct PortHolder {
  Process process;
  tcp::Listener listener = {};
  bool is_debug_server = false;      ///< of PyTorch; otherwise the profiler service of TensorFlow or JAX
  std::string socket = {};           ///< path of the Unix socket, as the process named it; empty: `listener`
  bool may_connect = true;           ///< the daemon has permission to connect to the socket
  bool has_safe_host_trace = false;  ///< as SocketHolder has it

  bool operator==(const PortHolder&) const = default;
};

/// The processes on the ports, and the ports that cannot be used.
struct Ports {
  std::vector<PortHolder> holders;  ///< sorted by pid; one port of each process
  std::set<std::uint16_t> shared;   ///< several processes of one user listen; the kernel chooses who answers
  std::set<std::uint16_t> hidden;   ///< a process listens that gpumeter may not inspect
  std::set<std::string> hidden_sockets;  ///< the same, by path

  bool operator==(const Ports&) const = default;
};

/// Finds the processes that listen on ports which the configuration names. Lists the sockets; only for one
/// that is new, looks through the processes of its user. One thread; reads /proc.
class PortSearch {
 public:
  /// `clock` must outlive the threads of SocketHolders.
  PortSearch(const std::string& procfs, std::set<std::uint16_t> ports, const Clock& clock)
      : procfs_(procfs), ports_(std::move(ports)), holders_(procfs, clock) {}

  /// Returns an Error if the kernel does not list its sockets.
  Result<Ports> find();

 private:
  Result<std::vector<tcp::Listener>> listeners() const;

  const std::string procfs_;
  const std::set<std::uint16_t> ports_;
  SocketHolders holders_;
};

/// Returns an Error unless the socket still listens on its port, and no other one does. For the moment before
/// a connection: after a search, the port may have passed to another user's process. Any thread.
Result<Done> check_listener(const std::string& procfs, const tcp::Listener& listener);

}  // namespace gpumeter::profiles
