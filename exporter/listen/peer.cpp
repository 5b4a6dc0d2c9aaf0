#include "exporter/listen/peer.hpp"

#include <netinet/in.h>

#include <cstddef>
#include <cstring>

#include "base/shares.hpp"

namespace gpumeter {
namespace {

constexpr std::size_t kNetworkBytes = 8;  // of an IPv6 address: its first 64 bits

std::string bytes_of(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

Peer of_ipv4(const in_addr& address) {
  return {bytes_of(&address, sizeof address), ntohl(address.s_addr) >> 24 != IN_LOOPBACKNET};
}

Peer of_ipv6(const in6_addr& address) {
  if (!IN6_IS_ADDR_V4MAPPED(&address)) {
    return {bytes_of(&address, kNetworkBytes), !IN6_IS_ADDR_LOOPBACK(&address)};
  }
  in_addr mapped{};
  std::memcpy(&mapped, &address.s6_addr[12], sizeof mapped);
  return of_ipv4(mapped);
}

}  // namespace

Peer Peer::of_uid(std::uint32_t uid, const UserOwners* owners) {
  return {.key = std::to_string(payer_of(uid, owners == nullptr ? uid : owners->owner_of(uid)))};
}

Peer Peer::of(const sockaddr* address, int descriptor, const UserOwners* owners) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_UNIX) {
    ucred user{};
    socklen_t size = sizeof user;
    const bool is_known = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0;
    return is_known ? of_uid(user.uid, owners) : Peer();
  }
  if (address->sa_family == AF_INET) {
    sockaddr_in ip{};
    std::memcpy(&ip, address, sizeof ip);
    return of_ipv4(ip.sin_addr);
  }
  if (address->sa_family != AF_INET6) return {};
  sockaddr_in6 ip{};
  std::memcpy(&ip, address, sizeof ip);
  return of_ipv6(ip.sin6_addr);
}

}  // namespace gpumeter
