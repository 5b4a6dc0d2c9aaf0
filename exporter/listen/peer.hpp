#pragma once

#include <sys/socket.h>

#include <compare>
#include <cstdint>
#include <string>

#include "base/user_owners.hpp"

namespace gpumeter {

/// The other end of an accepted connection, as far as limits distinguish clients: an address, or the owner
/// of the process at the other end of a Unix socket.
struct Peer {
  /// An IPv4 address, the first 64 bits of an IPv6 address (one subscriber usually has them), or the number
  /// of the user who pays (base/shares.hpp).
  std::string key;
  bool is_remote = false;  ///< on another machine
  auto operator<=>(const Peer&) const = default;

  /// `address` may be null. For a Unix socket, the kernel names the user at the other end of `descriptor`,
  /// and `owners` who owns that uid; null: each uid is its own.
  static Peer of(const sockaddr* address, int descriptor, const UserOwners* owners = nullptr);
  static Peer of_uid(std::uint32_t uid, const UserOwners* owners);
};

}  // namespace gpumeter
