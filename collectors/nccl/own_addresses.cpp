#include "collectors/nccl/own_addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>

namespace gpumeter::nccl {

std::set<std::string> own_addresses() {
  std::set<std::string> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    const sockaddr* address = each->ifa_addr;
    if (address == nullptr || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) continue;
    const void* bytes =
        address->sa_family == AF_INET
            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
            : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (::inet_ntop(address->sa_family, bytes, text.data(), text.size()) != nullptr)
      addresses.insert(text.data());
  }
  ::freeifaddrs(first);
  return addresses;
}

}  // namespace gpumeter::nccl
