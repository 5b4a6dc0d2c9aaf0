#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::servers {

/// A listening TCP socket of this network namespace, as the kernel's sock_diag reports it.
struct Listener {
  std::uint16_t port = 0;
  std::string address;          ///< where this machine reaches it: "127.0.0.1", "::1"; empty: not on loopback
  std::uint64_t inode = 0;      ///< /proc/PID/fd/N is "socket:[inode]"
  std::uint32_t uid = 0;        ///< owner
  std::uint64_t cgroup_id = 0;  ///< inode of the cgroup (v2) that created it; 0: unknown (Linux before 5.8)

  bool operator==(const Listener&) const = default;
};

/// Adds the listeners of one datagram of the kernel. Returns false after the last one of an answer, and if
/// the kernel reports an error. Any bytes; any thread.
bool take_listeners(std::span<const std::byte> datagram, std::vector<Listener>& out);

/// All listening TCP sockets, IPv4 before IPv6. Needs no privilege. Returns an Error if the kernel has no
/// sock_diag. Does not block. Any thread.
Result<std::vector<Listener>> tcp_listeners();

}  // namespace gpumeter::servers
