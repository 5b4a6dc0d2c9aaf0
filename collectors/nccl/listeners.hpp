#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpumeter::nccl {

/// A socket of this machine that listens on NCCL's port: RAS of one process. All processes of one user share
/// the port, and the first user of a machine has it.
struct Listener {
  int family = AF_INET;  ///< AF_INET or AF_INET6: the loopback address to connect to
  std::uint32_t uid = 0;
  std::uint64_t inode = 0;

  bool operator==(const Listener&) const = default;
};

/// Reads /proc/net/tcp or /proc/net/tcp6 (`family`). Only sockets that loopback reaches: those on a loopback
/// address or on all addresses.
std::vector<Listener> listeners_in(std::string_view table, int family, std::uint16_t port);

/// The listeners of the network namespace of `procfs`: of containers, only those with the host's network.
std::vector<Listener> read_listeners(const std::string& procfs, std::uint16_t port);

/// The machine's own addresses, as NCCL prints them (inet_ntop).
std::set<std::string> own_addresses();

}  // namespace gpumeter::nccl
