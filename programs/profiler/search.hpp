#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "collectors/sources/tcp.hpp"
#include "programs/profiler/desk.hpp"
#include "programs/profiler/settings.hpp"

namespace gpumeter::profiles {

/// The process that has a listening socket open.
struct SocketHolder {
  int pid = 0;
  std::uint32_t uid = 0;    ///< effective
  std::uint64_t start = 0;  ///< in clock ticks since boot
  /// It has a thread of PyTorch's worker server: its debug server. Otherwise a process on a port has the
  /// profiler service of TensorFlow or JAX.
  bool has_worker_server = false;
  bool has_safe_host_trace = false;  ///< its framework is known to go on while the host is traced

  bool operator==(const SocketHolder&) const = default;
};

/// Sockets to look for, by inode, with the user of their process; nullopt: any user.
using WantedSockets = std::map<std::uint64_t, std::optional<std::uint32_t>>;

/// What /proc shows of a process.
struct ProcessLook {
  SocketHolder process = {};        ///< pid 0: it has ended
  std::set<std::uint64_t> sockets;  ///< those of the wanted ones that it has open
};

/// Looks at a process, also at its descriptors if sockets are wanted. Reads /proc. Any thread.
ProcessLook look_at(const std::string& procfs, int pid, const WantedSockets& wanted);

/// Remembers which process has which socket, and looks through the processes only for sockets that are new.
/// If a process and its children have a socket, the oldest one counts: children inherit it. Without
/// CAP_SYS_PTRACE, finds only processes of its own user. One thread.
///
/// The kernel may keep a reader of /proc/PID waiting. A process that takes longer than kPatience costs one
/// thread ("profile-look") until it answers, and no other process waits for it. What was known of it stays in
/// force.
class SocketHolders {
 public:
  /// For one process; a look takes less than a millisecond.
  static constexpr Nanoseconds kPatience = std::chrono::seconds(1);
  /// look_at() with the procfs, or a test's.
  using Look = std::function<ProcessLook(int pid, const WantedSockets& wanted)>;

  /// `clock` must outlive the threads.
  SocketHolders(const std::string& procfs, const Clock& clock, Look look = {});

  /// Looks for these sockets, and forgets all others.
  void look_for(const WantedSockets& sockets);
  /// Returns null if no process is known.
  const SocketHolder* of(std::uint64_t inode) const;

 private:
  std::vector<std::string> known_pids() const;
  void renew();
  void find(const WantedSockets& wanted);

  const std::string procfs_;
  const Look look_;
  std::unique_ptr<BoundedCalls> calls_;
  std::map<std::uint64_t, SocketHolder> known_;  ///< by inode
};

/// A process that listens on one of the ports, on loopback, or on a Unix socket.
struct PortHolder {
  SocketHolder process;
  tcp::Listener listener = {};
  std::string socket = {};  ///< path of the Unix socket, as the process named it; empty: `listener`
  bool may_connect = true;  ///< the program has permission to connect to the socket

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

/// Returns an Error unless the socket still listens on its port, and no other one does. For the moment before
/// a connection: after a search, the port may have passed to another user's process. Any thread.
Result<Done> check_listener(const std::string& procfs, const tcp::Listener& listener);

/// A Unix stream socket that listens.
struct UnixListener {
  std::string path;  ///< as its process named it
  std::uint64_t inode = 0;

  bool operator==(const UnixListener&) const = default;
};

/// The listening sockets with an absolute path in the text of /proc/net/unix. Any bytes; any thread.
std::vector<UnixListener> unix_listeners_in(std::string_view table);

/// Finds the processes that listen on `profiles.profiler_ports`, and the worker servers of PyTorch
/// (torch.distributed.elastic.control_plane, TORCH_WORKER_SERVER_SOCKET) on Unix sockets whose paths match
/// `profiles.worker_sockets` (fnmatch(3), FNM_PATHNAME). Lists the sockets of this network namespace; only
/// for one that is new, looks through the processes. One thread; reads /proc, and asks the folders of the
/// sockets.
class ServiceSearch {
 public:
  /// All but the settings must outlive this object, and the clock also the threads of SocketHolders.
  ServiceSearch(const Settings& settings, const std::string& procfs, const Clock& clock, Log& log)
      : procfs_(procfs),
        ports_(settings.profiler_ports),
        patterns_(settings.worker_sockets),
        holders_(procfs, clock),
        log_(log) {}

  /// Returns an Error if the kernel does not list its sockets.
  Result<Ports> find();
  /// Returns the processes, and logs what changed. Call about every 5 s.
  const std::vector<PortHolder>& turn();

 private:
  Result<std::vector<tcp::Listener>> listeners() const;
  Result<std::vector<UnixListener>> unix_listeners() const;
  void log_changes(const Ports& now);
  void log_unused(const Ports& now);

  const std::string procfs_;
  const std::vector<options::Port> ports_;
  const std::vector<std::string> patterns_;
  SocketHolders holders_;
  Log& log_;
  Ports known_;
  std::set<std::string> unused_;  ///< ports and sockets that a warning has named
  std::string error_;
};

/// True if the path matches one of the patterns, and names no folder above.
bool is_worker_socket(const std::string& path, std::span<const std::string> patterns);

/// Connects to the socket, non-blocking, and follows no link of others. Returns an Error if a process of
/// another user than `uid` listens, by SO_PEERCRED. Blocks as the folder's file system does. Any thread.
Result<Descriptor> connect_to_socket(const std::string& path, std::uint32_t uid);

}  // namespace gpumeter::profiles
