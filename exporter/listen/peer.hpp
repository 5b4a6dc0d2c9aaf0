#pragma once

#include <sys/socket.h>

#include <compare>
#include <string>

namespace gpumeter {

/// The other end of an accepted connection, as far as limits distinguish clients: an address, or the user of
/// a Unix socket.
struct Peer {
  /// An IPv4 address, the first 64 bits of an IPv6 address (one subscriber usually has them), or a user.
  std::string key;
  bool is_remote = false;  ///< on another machine
  auto operator<=>(const Peer&) const = default;

  /// `address` may be null. For a Unix socket, the kernel names the user at the other end of `descriptor`.
  static Peer of(const sockaddr* address, int descriptor);
};

}  // namespace gpumeter
