#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "collectors/profiles/search/ports.hpp"

namespace gpumeter::profiles {

/// A Unix stream socket that listens.
struct UnixListener {
  std::string path;  ///< as its process named it
  std::uint64_t inode = 0;

  bool operator==(const UnixListener&) const = default;
};

/// The listening sockets with an absolute path in the text of /proc/net/unix. Any bytes; any thread.
std::vector<UnixListener> unix_listeners_in(std::string_view table);

/// Finds the worker servers of PyTorch (torch.distributed.elastic.control_plane, TORCH_WORKER_SERVER_SOCKET)
/// on Unix sockets whose paths match the configuration's patterns (fnmatch(3), FNM_PATHNAME). Lists the
/// sockets of this network namespace; only for one that is new, looks through all processes. One thread;
/// reads /proc, and asks the folders of the sockets.
class SocketSearch {
 public:
  /// `clock` must outlive the threads of SocketHolders.
  SocketSearch(const std::string& procfs, std::vector<std::string> patterns, const Clock& clock)
      : procfs_(procfs), patterns_(std::move(patterns)), holders_(procfs, clock) {}

  /// Adds them to `ports`, unless their process has a port there. Returns an Error if the kernel does not
  /// list its sockets.
  Result<Done> find(Ports& ports);

 private:
  const std::string procfs_;
  const std::vector<std::string> patterns_;
  SocketHolders holders_;
};

/// True if the path matches one of the patterns, and names no folder above.
bool is_worker_socket(const std::string& path, std::span<const std::string> patterns);

/// Connects to the socket, non-blocking, and follows no link of others. Returns an Error if a process of
/// another user than `uid` listens, by SO_PEERCRED. Blocks as the folder's file system does. Any thread.
Result<Descriptor> connect_to_socket(const std::string& path, std::uint32_t uid);

}  // namespace gpumeter::profiles
