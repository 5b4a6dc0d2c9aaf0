#include "exporter/listen_address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

namespace gpumeter {
namespace {

struct HostPort {
  std::string host;
  std::uint16_t port;
};

Error bad_address(std::string_view address, std::string_view why) {
  return Error("listen address \"" + std::string(address) + "\": " + std::string(why) +
               "; write host:port, such as localhost:10478, :10478 or [::1]:10478");
}

std::optional<std::uint16_t> parse_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return port;
}

Result<HostPort> split(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return bad_address(address, "has no port");
  std::string_view host = address.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return bad_address(address, "an IPv6 address stands in brackets");
  }
  const auto port = parse_port(address.substr(colon + 1));
  if (!port) return bad_address(address, "the port is a number from 0 to 65535");
  return HostPort{std::string(host), *port};
}

template <class Address>
Endpoint endpoint_of(const Address& address) noexcept {
  Endpoint endpoint;
  std::memcpy(&endpoint.address, &address, sizeof address);
  endpoint.length = sizeof address;
  return endpoint;
}

Endpoint ipv4(std::uint32_t host) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(host);
  return endpoint_of(address);
}

Endpoint ipv6(const in6_addr& host) noexcept {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = host;
  return endpoint_of(address);
}

Endpoint with_port(Endpoint endpoint, std::uint16_t port) noexcept {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  const in_port_t wire = htons(port);
  std::memcpy(reinterpret_cast<char*>(&endpoint.address) + offsetof(sockaddr_in, sin_port), &wire,
              sizeof wire);
  return endpoint;
}

Result<std::vector<Endpoint>> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* list = nullptr;
  const int failure = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (failure != 0) return Error("cannot resolve \"" + host + "\": " + gai_strerror(failure));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> guard(list, freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Endpoint& endpoint = endpoints.emplace_back();
    endpoint.length = entry->ai_addrlen;
    std::memcpy(&endpoint.address, entry->ai_addr, entry->ai_addrlen);
  }
  return endpoints;
}

/// localhost is known without asking: its two addresses are fixed (RFC 6761), and the daemon listens
/// there by default, also where no resolver works.
Result<std::vector<Endpoint>> endpoints_of(const std::string& host) {
  if (host == "localhost") return std::vector{ipv4(INADDR_LOOPBACK), ipv6(in6addr_loopback)};
  return resolve(host);
}

/// Every address of the machine: one socket for both families, or IPv4 alone where the kernel has no IPv6.
Result<Listening> listen_everywhere(std::uint16_t port) {
  Listening listening;
  auto both = ListenSocket::open(with_port(ipv6(in6addr_any), port));
  if (both) {
    listening.sockets.push_back(*std::move(both));
    return listening;
  }
  auto ipv4_only = ListenSocket::open(with_port(ipv4(INADDR_ANY), port));
  if (!ipv4_only) return both.error();
  listening.sockets.push_back(*std::move(ipv4_only));
  listening.notes.push_back(both.error().message());
  return listening;
}

/// Listens on as many as can be had.
Result<Listening> listen_on_any(const std::vector<Endpoint>& endpoints, std::uint16_t port) {
  Listening listening;
  std::string why;
  for (const Endpoint& endpoint : endpoints) {
    auto socket = ListenSocket::open(with_port(endpoint, port));
    if (socket) {
      port = socket->endpoint().port();
      listening.sockets.push_back(*std::move(socket));
    } else {
      why += (why.empty() ? "" : "; ") + socket.error().message();
      listening.notes.push_back(socket.error().message());
    }
  }
  if (listening.sockets.empty()) return Error(why);
  return listening;
}

}  // namespace

Result<Listening> listen_on(std::string_view address) {
  const auto where = split(address);
  if (!where) return where.error();
  if (where->host.empty()) return listen_everywhere(where->port);
  const auto endpoints = endpoints_of(where->host);
  if (!endpoints) return endpoints.error().with("listen address \"" + std::string(address) + "\"");
  return listen_on_any(*endpoints, where->port);
}

}  // namespace gpumeter
