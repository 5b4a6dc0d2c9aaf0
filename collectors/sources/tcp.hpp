#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// The listening TCP sockets of this network namespace, and the processes that have them open.
namespace gpumeter::tcp {

/// A listening socket, as the kernel reports it.
struct Listener {
  std::uint16_t port = 0;
  std::string address;          ///< where this machine reaches it: "127.0.0.1", "::1"; empty: not on loopback
  std::uint64_t inode = 0;      ///< /proc/PID/fd/N is "socket:[inode]"
  std::uint32_t uid = 0;        ///< owner
  std::uint64_t cgroup_id = 0;  ///< inode of the cgroup (v2) that created it; 0: unknown

  /// The loopback address to connect to is ::1. Only with an address.
  bool is_ip6() const noexcept { return address.find(':') != std::string::npos; }
  bool operator==(const Listener&) const = default;
};

/// All listening sockets, IPv4 before IPv6. Needs no privilege and does not block. Asks the kernel's
/// sock_diag, which also knows the cgroups (from Linux 5.8 on). If the kernel has no sock_diag, or if
/// `procfs` is no procfs but a tree of files, reads the tables PROCFS/net/tcp and tcp6. Returns an Error if
/// neither can be read. Any thread.
Result<std::vector<Listener>> listeners(const std::string& procfs);

/// The same by sock_diag alone.
Result<std::vector<Listener>> listeners_by_sock_diag();

/// Adds the listeners of one datagram of sock_diag. Returns false after the last one of an answer, and an
/// Error if the kernel reports one. Any bytes; any thread.
Result<bool> take_listeners(std::span<const std::byte> datagram, std::vector<Listener>& out);

/// The listeners in the text of /proc/net/tcp or, with `is_ip6`, of /proc/net/tcp6. Any bytes; any thread.
std::vector<Listener> listeners_in(std::string_view table, bool is_ip6);

/// What /proc shows of a process.
struct Held {
  std::set<std::uint64_t> sockets;  ///< inodes
  int error = 0;  ///< errno if its descriptors cannot be read: EACCES for another user's process
};

/// Which of the sockets `wanted` the process has open. A process that was forked has those of its parent.
/// Processes of other users require CAP_SYS_PTRACE, and before Linux 5.14 CAP_DAC_READ_SEARCH too: only their
/// owner may open /proc/PID/fd, whose links name the sockets, but since then /proc/PID/fdinfo, which is open
/// to whoever may trace, has their inodes (kernel commits 7bc3fa0172a4 and 3845f256a8b5). Reads a link or a
/// file for each descriptor of the process, so not for a thread that others wait for. Any thread.
Held sockets_of(const std::string& procfs, int pid, const std::set<std::uint64_t>& wanted);

}  // namespace gpumeter::tcp
